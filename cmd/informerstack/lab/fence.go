// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/informerstack/apitest"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/observe/trace"
)

// tokenAnnotation holds the fencing token of the leader that wrote an object last.
const tokenAnnotation = "informerstack.example.com/fencing-token"

// fence is the receiver of the leaders' writes. It stores the writer's token with the object, and
// refuses a write with an older one. The API server has no such check.
//
//	F1  the tokens of the accepted writes of one object never decrease
type fence struct {
	mu     sync.Mutex
	former *leaderelection.FencingToken // of the leader that was paused last, or nil
	shown  FenceView                    // the token is that of the write that was accepted last
}

// keep keeps the token of a leader that is paused, for its late write.
func (f *fence) keep(token leaderelection.FencingToken) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.former = &token
}

// late returns the token of the leader that was paused last.
func (f *fence) late() (leaderelection.FencingToken, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.former == nil {
		return leaderelection.FencingToken{}, errors.New("no leader has been paused")
	}
	return *f.former, nil
}

// write writes the object with token, unless a leader with a newer token has written it. The
// server refuses a write between Get and Update, because Update has the resourceVersion.
func (f *fence) write(
	server *apitest.Server, obj apitest.Object, token leaderelection.FencingToken,
) error {
	for {
		if err := server.Get(obj); err != nil {
			return err
		}
		annotations := obj.GetAnnotations()
		newest, err := leaderelection.ParseFencingToken(annotations[tokenAnnotation])
		if err == nil && token.Before(newest) {
			f.refuse()
			return fmt.Errorf("write with token %d refused: it is older than token %d",
				token.Transitions, newest.Transitions)
		}
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[tokenAnnotation] = token.String()
		obj.SetAnnotations(annotations)
		switch err := server.Update(obj); {
		case err == nil:
			f.accept(token)
			return nil
		case !apierrors.IsConflict(err):
			return err
		}
	}
}

func (f *fence) accept(token leaderelection.FencingToken) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shown.Writes++
	f.shown.Token = token.Transitions
}

func (f *fence) refuse() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shown.Refused++
}

func (f *fence) view() FenceView {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.shown
}

// fencingToken is the beginning of the detail of a leader's write.
const fencingToken = "fencing token "

// leaderWrites writes an object with the token of the leader, or if late is true with that of the
// leader that was paused last.
func (l *Lab) leaderWrites(key string, late bool) error {
	e := l.elected()
	objects := l.known()
	if e == nil || objects == nil {
		return errNoElection
	}
	token, err := e.token(late)
	if err != nil {
		return err
	}
	stored, exists, err := objects.GetByKey(key)
	if err != nil || !exists {
		return fmt.Errorf("no object %q in the store", key)
	}
	obj, ok := stored.(apitest.Object)
	if !ok {
		return fmt.Errorf("object %q has no metadata", key)
	}
	err = e.fence.write(l.options.Server, obj.DeepCopyObject().(apitest.Object), token)
	event := trace.Event{
		Time: time.Now(), Hop: trace.Server, What: http.MethodPut, Key: key,
		Detail: fmt.Sprint(fencingToken, token.Transitions),
	}
	if err != nil {
		event.Error = err.Error()
	}
	l.recorder.record(event)
	return err
}

// token returns the token of the leader, or of the leader that was paused last.
func (e *election) token(late bool) (leaderelection.FencingToken, error) {
	if late {
		return e.fence.late()
	}
	leader := e.leader()
	if leader == nil {
		return leaderelection.FencingToken{}, errNoLeader
	}
	return leader.elector.Status().Token, nil
}
