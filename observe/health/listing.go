// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"
	"slices"
	"time"
)

// maxNames bounds the names of an error about another one.
const maxNames = 20

// pageOf is the part of the page that shows the queues and controllers with a name, with the items
// of their lists that are wanted.
func (h *Handler) pageOf(w wanted) (Page, error) {
	h.recording()
	p := Page{
		Time:        time.Now(),
		Program:     programName(),
		Queues:      each(current(h, &h.queues), w),
		Controllers: each(current(h, &h.controllers), w),
	}
	return p.only(w.queue)
}

// only returns the queues and controllers with a name, and no more of the page.
func (p Page) only(name string) (Page, error) {
	only := Page{Time: p.Time, Program: p.Program, Informers: []Informer{}, Findings: []Finding{},
		Queues: []Queue{}, Controllers: []Controller{}}
	var names []string
	for _, q := range p.Queues {
		names = append(names, q.Name)
		if q.Name == name {
			only.Queues = append(only.Queues, q)
		}
	}
	for _, c := range p.Controllers {
		names = append(names, c.Name)
		if c.Name == name {
			only.Controllers = append(only.Controllers, c)
		}
	}
	if len(only.Queues)+len(only.Controllers) == 0 {
		if len(names) == 0 {
			return Page{}, fmt.Errorf("queue=%q: there is no queue and no controller", name)
		}
		slices.Sort(names)
		return Page{}, fmt.Errorf("queue=%q: no queue and no controller has this name: want one "+
			"of %s", name, firstOf(slices.Compact(names), maxNames))
	}
	return only, nil
}

// limited returns the page with those items of each list that are wanted.
func (p Page) limited(w wanted) Page {
	p.Queues, p.Controllers = slices.Clone(p.Queues), slices.Clone(p.Controllers)
	for i := range p.Queues {
		q := &p.Queues[i]
		q.Ready, q.Processing, q.Waiting = q.Ready.page(w), q.Processing.page(w), q.Waiting.page(w)
		q.Again.Items = slices.DeleteFunc(slices.Clone(q.Again.Items), func(key string) bool {
			return !slices.Contains(q.Processing.Items, key)
		})
	}
	for i := range p.Controllers {
		c := &p.Controllers[i]
		c.Ready, c.Running, c.Waiting = c.Ready.page(w), c.Running.page(w), c.Waiting.page(w)
		c.Failing, c.DeadLetters = c.Failing.page(w), c.DeadLetters.page(w)
	}
	if p.Journal != nil {
		facts := *p.Journal
		facts.Keys = facts.Keys[:min(w.limit, len(facts.Keys))]
		p.Journal = &facts
	}
	return p
}
