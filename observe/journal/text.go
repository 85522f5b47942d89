// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"strings"
	"time"
)

// String returns the cause as a part of a sentence, such as "update of default/a from 4 to 5".
func (c Cause) String() string {
	switch c.Kind {
	case Retry:
		if c.Error != "" {
			return "retry after: " + c.Error
		}
		return "retry (AddRateLimited)"
	case Delay:
		return fmt.Sprintf("AddAfter of %s by its worker", c.Delay)
	case ByWorker:
		return "added by the worker that had " + c.By
	case Program:
		return "added by " + c.By
	case NotKnown:
		return fmt.Sprintf("not known: it was added before the recording began, together with the "+
			"last reconcile, or before %d other keys", maxKeys)
	}
	if c.Call == nil {
		return string(c.Kind)
	}
	return c.Call.String()
}

// String returns the call as a part of a sentence.
func (c Call) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s", c.Kind, c.Key)
	switch {
	case c.Kind == Updated:
		fmt.Fprintf(&b, " from resourceVersion %s to %s", c.Was, c.ResourceVersion)
	case c.ResourceVersion != "":
		fmt.Fprintf(&b, " at resourceVersion %s", c.ResourceVersion)
	}
	if len(c.Managers) > 0 {
		fmt.Fprintf(&b, " by %s", strings.Join(c.Managers, ", "))
	}
	switch {
	case len(c.Fields) > 0:
		fmt.Fprintf(&b, " (changed: %s)", strings.Join(c.Fields, " "))
	case c.Fields != nil:
		b.WriteString(" (changed: no field that the informer keeps)")
	}
	fmt.Fprintf(&b, ", informer %s, handler %s", c.Informer, c.Handler)
	return b.String()
}

// String returns the reconcile as a sentence without its subject.
func (r Reconcile) String() string {
	result := "is running"
	switch r.Result {
	case Forgotten:
		result = "ended with Forget"
	case Retried:
		result = "ended with AddRateLimited"
	case Postponed:
		result = "ended with AddAfter"
	case NoForget:
		result = "ended without Forget and without a retry"
	}
	meanwhile := ""
	switch {
	case r.Error == "":
	case r.Result == Retried:
		result += " (" + r.Error + ")"
	case r.Returned:
		meanwhile = "; it returned the error: " + r.Error
	default: // it may be about something else
		meanwhile = "; its goroutine reported meanwhile: " + r.Error
	}
	causes := make([]string, 0, len(r.Causes))
	for _, c := range r.Causes {
		causes = append(causes, c.String())
	}
	if r.More > 0 {
		causes = append(causes, fmt.Sprintf("%d more", r.More))
	}
	took := ""
	if r.Result != Running {
		took = " in " + r.Duration.Round(time.Microsecond).String()
	}
	return fmt.Sprintf("%s%s, because of: %s%s", result, took, strings.Join(causes, "; "),
		meanwhile)
}
