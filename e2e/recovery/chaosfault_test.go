// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/e2e/fixture"
)

// killEtcdFor kills etcd, and starts it again after d with what it had stored.
func killEtcdFor(d time.Duration) func(*world) time.Time {
	return func(w *world) time.Time {
		w.cluster.KillEtcd()
		w.wait(d)
		require.NoError(w.t, w.cluster.StartEtcd(w.t.Context()))
		return w.answers(isNil)
	}
}

// compactAfter compacts the history while the watches are held back for d, and resets them. Without
// the API server's watch cache, their resourceVersions have expired then.
func compactAfter(d time.Duration) func(*world) time.Time {
	return func(w *world) time.Time {
		w.eachLink((*fixture.Link).Stall)
		w.wait(d)
		require.NoError(w.t, w.cluster.Compact(w.t.Context()))
		w.eachLink((*fixture.Link).Reset)
		w.eachLink((*fixture.Link).Release)
		return time.Now()
	}
}

// slowFor lets that many bytes pass in a second, fewer than the changes need.
func slowFor(rate int, d time.Duration) func(*world) time.Time {
	return func(w *world) time.Time {
		w.eachLink(func(l *fixture.Link) { l.Slow(rate) })
		w.wait(d)
		w.eachLink(func(l *fixture.Link) { l.Slow(0) })
		return time.Now()
	}
}

// rotateAfter revokes the informers' token, which ends no open watch, cuts their connections, and
// puts a new token into their file after d.
func rotateAfter(d time.Duration) func(*world) time.Time {
	return func(w *world) time.Time {
		token, secret := w.account.issue()
		w.account.revoke()
		w.answers(apierrors.IsUnauthorized)
		w.eachLink((*fixture.Link).Reset)
		w.wait(d)
		w.account.write(token, secret)
		return w.answers(isNil)
	}
}

// removeFor deletes the CustomResourceDefinition with all objects, and creates it again after d.
func removeFor(d time.Duration) func(*world) time.Time {
	return func(w *world) time.Time {
		w.kind.remove(w)
		w.wait(d)
		w.kind.prepare(w)
		return w.answers(isNil)
	}
}

// exhaustFor makes API Priority and Fairness refuse the informers' requests. It gives their account
// a priority level that admits one request at a time, and fills it with a LIST that the test does
// not read.
func exhaustFor(d time.Duration) func(*world) time.Time {
	return func(w *world) time.Time {
		ctx := w.t.Context()
		config := w.account.config()
		config.DisableCompression = true
		hog := w.kind.client(w.t, config).Get().Resource(w.kind.resource.Resource).
			Namespace(w.largeObjects())
		level, schema := w.narrowLevel()
		flows := w.admin.FlowcontrolV1()
		_, err := flows.PriorityLevelConfigurations().Create(ctx, level, metav1.CreateOptions{})
		require.NoError(w.t, err)
		_, err = flows.FlowSchemas().Create(ctx, schema, metav1.CreateOptions{})
		require.NoError(w.t, err)

		w.wait(time.Second) // until the schema is in force
		answer, err := hog.Stream(ctx)
		require.NoError(w.t, err)
		w.answers(apierrors.IsTooManyRequests)
		w.eachLink((*fixture.Link).Reset)
		w.wait(d)
		require.NoError(w.t, flows.FlowSchemas().Delete(ctx, schema.Name, metav1.DeleteOptions{}))
		require.NoError(w.t, answer.Close())
		return w.answers(isNil)
	}
}

// narrowLevel returns a priority level that admits one request at a time and queues no other, and
// the schema that assigns the informers' account to it.
func (w *world) narrowLevel() (
	*flowcontrolv1.PriorityLevelConfiguration, *flowcontrolv1.FlowSchema,
) {
	name := metav1.ObjectMeta{Name: "narrow"}
	level := &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: name}
	level.Spec.Type = flowcontrolv1.PriorityLevelEnablementLimited
	level.Spec.Limited = &flowcontrolv1.LimitedPriorityLevelConfiguration{
		NominalConcurrencyShares: new(int32(0)),
		LendablePercent:          new(int32(0)),
		BorrowingLimitPercent:    new(int32(0)),
		LimitResponse: flowcontrolv1.LimitResponse{
			Type: flowcontrolv1.LimitResponseTypeReject,
		},
	}
	schema := &flowcontrolv1.FlowSchema{ObjectMeta: name}
	schema.Spec.MatchingPrecedence = 2 // before all others but "exempt"
	schema.Spec.PriorityLevelConfiguration.Name = name.Name
	schema.Spec.Rules = []flowcontrolv1.PolicyRulesWithSubjects{{
		Subjects: []flowcontrolv1.Subject{{
			Kind: flowcontrolv1.SubjectKindServiceAccount,
			ServiceAccount: &flowcontrolv1.ServiceAccountSubject{
				Namespace: w.account.namespace, Name: informerAccount,
			},
		}},
		ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
			Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"},
			Namespaces: []string{"*"},
		}},
	}}
	return level, schema
}

// largeObjects returns a namespace with a LIST that is larger than a connection's buffers.
func (w *world) largeObjects() (namespace string) {
	namespace = fixture.NewNamespace(w.t, w.admin)
	for i := range 16 {
		large := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("large-%d", i)},
			BinaryData: map[string][]byte{"bytes": make([]byte, 700<<10)},
		}
		_, _ = rand.Read(large.BinaryData["bytes"]) // never fails
		_, err := w.admin.CoreV1().ConfigMaps(namespace).Create(w.t.Context(), large,
			metav1.CreateOptions{})
		require.NoError(w.t, err)
	}
	return namespace
}

// lagFor moves the informers to a second API server that has not heard from etcd for a while, and
// lets that server catch up after d.
func lagFor(d time.Duration) func(*world) time.Time {
	return func(w *world) time.Time {
		etcd := fixture.NewLink()
		listener, err := etcd.Listen(w.cluster.EtcdAddress())
		require.NoError(w.t, err)
		w.t.Cleanup(func() { _ = listener.Close() })
		replica, err := w.cluster.StartReplica(w.t.Context(), listener.Addr().String())
		require.NoError(w.t, err)
		etcd.Stall()
		w.wait(5 * time.Second)
		w.eachLink(func(l *fixture.Link) { l.Redirect(replica) })
		w.wait(d)
		etcd.Release()
		return time.Now()
	}
}

// suspendFor stops this process for d. A child process stops it, changes objects meanwhile, and
// continues it.
func suspendFor(d time.Duration) func(*world) time.Time {
	return func(w *world) time.Time {
		var namespaces []string
		for _, writer := range w.writers {
			namespaces = append(namespaces, writer.namespace)
		}
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), suspendVariable+"="+d.String(),
			"KUBECONFIG="+w.cluster.Kubeconfig(), "NAMESPACES="+strings.Join(namespaces, ","))
		output, err := child.CombinedOutput()
		require.NoError(w.t, err, "%s", output)
		return time.Now()
	}
}
