// SPDX-License-Identifier: Apache-2.0

package noted_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/informerstack/compat/example/noted"
	"example.com/informerstack/controller"
)

// verbs are the writes of a copy. lock: the server compares its version.
var verbs = map[string]struct {
	lock  bool
	write func(ctx context.Context, c client.Client, copied *appsv1.Deployment, dry bool) error
}{
	"Update": {true, func(
		ctx context.Context, c client.Client, copied *appsv1.Deployment, dry bool,
	) error {
		if dry {
			return c.Update(ctx, copied, client.DryRunAll)
		}
		return c.Update(ctx, copied)
	}},
	"Patch": {false, func(
		ctx context.Context, c client.Client, copied *appsv1.Deployment, dry bool,
	) error {
		patch := client.MergeFrom(copied.DeepCopy())
		copied.Labels = map[string]string{"patched": "yes"}
		if dry {
			return c.Patch(ctx, copied, patch, client.DryRunAll)
		}
		return c.Patch(ctx, copied, patch)
	}},
	"Patch of a version": {true, func(
		ctx context.Context, c client.Client, copied *appsv1.Deployment, dry bool,
	) error {
		patch := client.MergeFromWithOptions(
			copied.DeepCopy(), client.MergeFromWithOptimisticLock{})
		copied.Labels = map[string]string{"patched": "yes"}
		if dry {
			return c.Patch(ctx, copied, patch, client.DryRunAll)
		}
		return c.Patch(ctx, copied, patch)
	}},
	"Apply": {false, func(
		ctx context.Context, c client.Client, copied *appsv1.Deployment, dry bool,
	) error {
		return applied(ctx, c, dry, appsapply.Deployment("web", "ns").
			WithUID(copied.UID).WithLabels(map[string]string{"applied": "yes"}))
	}},
	"Apply of a version": {true, func(
		ctx context.Context, c client.Client, copied *appsv1.Deployment, dry bool,
	) error {
		return applied(ctx, c, dry, appsapply.Deployment("web", "ns").WithUID(copied.UID).
			WithResourceVersion(copied.ResourceVersion).
			WithLabels(map[string]string{"applied": "yes"}))
	}},
	"Status.Update": {true, func(
		ctx context.Context, c client.Client, copied *appsv1.Deployment, dry bool,
	) error {
		if dry {
			return c.Status().Update(ctx, copied, client.DryRunAll)
		}
		return c.Status().Update(ctx, copied)
	}},
	"Status.Patch": {false, func(
		ctx context.Context, c client.Client, copied *appsv1.Deployment, dry bool,
	) error {
		patch := client.MergeFrom(copied.DeepCopy())
		copied.Status.Replicas = 3
		if dry {
			return c.Status().Patch(ctx, copied, patch, client.DryRunAll)
		}
		return c.Status().Patch(ctx, copied, patch)
	}},
	"Status.Apply": {false, func(
		ctx context.Context, c client.Client, copied *appsv1.Deployment, dry bool,
	) error {
		config := appsapply.Deployment("web", "ns").WithUID(copied.UID).
			WithStatus(appsapply.DeploymentStatus().WithReplicas(3))
		if dry {
			return c.Status().Apply(ctx, config, client.FieldOwner("test"), client.DryRunAll)
		}
		return c.Status().Apply(ctx, config, client.FieldOwner("test"))
	}},
	"Scale": {true, func(
		ctx context.Context, c client.Client, copied *appsv1.Deployment, dry bool,
	) error {
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
		scale.ResourceVersion = copied.ResourceVersion
		if dry {
			return c.SubResource("scale").Update(
				ctx, copied, client.WithSubResourceBody(scale), client.DryRunAll)
		}
		return c.SubResource("scale").Update(ctx, copied, client.WithSubResourceBody(scale))
	}},
	"Delete": {false, func(
		ctx context.Context, c client.Client, copied *appsv1.Deployment, dry bool,
	) error {
		if dry {
			return c.Delete(ctx, copied, client.DryRunAll)
		}
		return c.Delete(ctx, copied)
	}},
}

func applied(
	ctx context.Context, c client.Client, dry bool, config *appsapply.DeploymentApplyConfiguration,
) error {
	owner := client.FieldOwner("test")
	if dry {
		return c.Apply(ctx, config, owner, client.DryRunAll)
	}
	return c.Apply(ctx, config, owner)
}

// likeTheServer makes the fake client answer as a server does: a Scale has the version of its
// object, and a dry run of an apply changes nothing.
var likeTheServer = interceptor.Funcs{
	SubResourceUpdate: func(ctx context.Context, c client.Client, name string, obj client.Object,
		opts ...client.SubResourceUpdateOption,
	) error {
		err := c.SubResource(name).Update(ctx, obj, opts...)
		body := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts).SubResourceBody
		if err == nil && body != nil {
			newest := obj.DeepCopyObject().(client.Object)
			err = c.Get(ctx, client.ObjectKeyFromObject(obj), newest)
			body.SetResourceVersion(newest.GetResourceVersion())
		}
		return err
	},
	Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration,
		opts ...client.ApplyOption,
	) error {
		if (&client.ApplyOptions{}).ApplyOptions(opts).DryRun != nil {
			return nil
		}
		return c.Apply(ctx, obj, opts...)
	},
	SubResourceApply: func(ctx context.Context, c client.Client, name string,
		obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption,
	) error {
		if (&client.SubResourceApplyOptions{}).ApplyOpts(opts).DryRun != nil {
			return nil
		}
		return c.SubResource(name).Apply(ctx, obj, opts...)
	},
}

// each runs test for each verb, with a deployment on a server and a copy of it.
func each(t *testing.T, test func(
	t *testing.T, verb string, server client.Client, notes *noted.Notes[string],
	copied *appsv1.Deployment,
)) {
	for verb := range verbs {
		t.Run(verb, func(t *testing.T) {
			copied := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "web", UID: "1"}}
			server := fake.NewClientBuilder().WithScheme(scheme.Scheme).
				WithStatusSubresource(copied).WithObjects(copied.DeepCopy()).Build()
			server = interceptor.NewClient(server, likeTheServer)
			require.NoError(t, server.Get(t.Context(), client.ObjectKeyFromObject(copied), copied))
			test(t, verb, server, noted.New[string](server), copied)
		})
	}
}

var deployments = appsv1.SchemeGroupVersion.WithKind("Deployment")

// The answer of each write makes the copy old, that of a dry run does not.
func TestClient_NotesAnAnswer(t *testing.T) {
	each(t, func(t *testing.T, verb string, _ client.Client, notes *noted.Notes[string],
		copied *appsv1.Deployment,
	) {
		old, writes := copied.DeepCopy(), notes.Writes(deployments)
		c, another := notes.For("key"), copied.DeepCopy()
		require.NoError(t, verbs[verb].write(t.Context(), c, another, true))
		assert.False(t, writes.Stale(old))
		assert.True(t, writes.Seen("key", old.ResourceVersion))

		require.NoError(t, verbs[verb].write(t.Context(), c, copied, false))
		assert.True(t, writes.Stale(old))
		assert.True(t, writes.Seen("another", old.ResourceVersion))
		assert.Equal(t, verb == "Delete", writes.Seen("key", old.ResourceVersion))
		other := notes.Writes(corev1.SchemeGroupVersion.WithKind("Pod"))
		assert.False(t, other.Stale(old), "another kind")
	})
}

// A Conflict is noted, and the second write of the copy is not sent.
func TestClient_NotesAConflict(t *testing.T) {
	each(t, func(t *testing.T, verb string, server client.Client, notes *noted.Notes[string],
		copied *appsv1.Deployment,
	) {
		newer := copied.DeepCopy()
		newer.Labels = map[string]string{"changed": "yes"}
		require.NoError(t, server.Update(t.Context(), newer))
		err := verbs[verb].write(t.Context(), notes.For("key"), copied.DeepCopy(), false)
		if !verbs[verb].lock {
			require.NoError(t, err)
			return
		}
		require.ErrorIs(t, err, controller.ErrStale)
		require.True(t, apierrors.IsConflict(err), err)
		assert.False(t, notes.Writes(deployments).Stale(newer))

		err = verbs[verb].write(t.Context(), notes.For("key"), copied.DeepCopy(), false)
		require.ErrorIs(t, err, controller.ErrStale)
		require.False(t, apierrors.IsConflict(err), err)
		require.NoError(t, verbs[verb].write(t.Context(), notes.For("key"), newer, false))
	})
}

func TestClient_NotesACreate(t *testing.T) {
	notes := noted.New[string](fake.NewClientBuilder().WithScheme(scheme.Scheme).Build())
	c := notes.For("key")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	require.NoError(t, c.Create(t.Context(), pod.DeepCopy(), client.DryRunAll))
	pods := notes.Writes(corev1.SchemeGroupVersion.WithKind("Pod"))
	assert.True(t, pods.Seen("key", ""))
	require.NoError(t, c.Create(t.Context(), pod))
	assert.False(t, pods.Seen("key", ""))
	assert.True(t, pods.Seen("key", pod.ResourceVersion))
}
