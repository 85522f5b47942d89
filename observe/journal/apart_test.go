// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The differences of objects are those of what apart leaves of them. The objects are not changed.
func TestModel_ApartHasTheSameDifferences(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		before := randomDeployment(random)
		after := before.DeepCopy()
		for range random.IntN(4) {
			mutate(random, reflect.ValueOf(after).Elem(), 0)
		}
		a, b := before.DeepCopy(), after.DeepCopy()
		require.Equal(t, allDifferences(before, after), differences(before, after), "seed %d", seed)
		require.Equal(t, a, before)
		require.Equal(t, b, after)
	}
}

func randomDeployment(random *rand.Rand) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	for range 40 {
		mutate(random, reflect.ValueOf(d).Elem(), 0)
	}
	return d
}

// mutate changes a random field.
func mutate(random *rand.Rand, v reflect.Value, depth int) {
	if depth > 8 {
		return
	}
	switch value := v.Addr().Interface().(type) {
	case *metav1.Time:
		*value = metav1.Unix(random.Int64N(3), 0)
		return
	case *metav1.MicroTime:
		*value = metav1.NewMicroTime(time.Unix(random.Int64N(3), 0))
		return
	case *resource.Quantity:
		*value = *resource.NewQuantity(random.Int64N(3), resource.BinarySI)
		return
	case *intstr.IntOrString:
		*value = intstr.FromString(fmt.Sprint(random.IntN(3)))
		return
	case *metav1.FieldsV1:
		*value = *metav1.NewFieldsV1(`{"f:a":{}}`)
		return
	case *corev1.ResourceList:
		*value = corev1.ResourceList{"cpu": *resource.NewQuantity(random.Int64N(3), "")}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		mutate(random, v.Field(random.IntN(v.NumField())), depth+1)
	case reflect.Pointer:
		if random.IntN(4) == 0 {
			v.SetZero()
			return
		}
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		mutate(random, v.Elem(), depth+1)
	case reflect.Slice:
		item := reflect.New(v.Type().Elem()).Elem()
		mutate(random, item, depth+1)
		v.Set(reflect.Append(v.Slice(0, random.IntN(v.Len()+1)), item))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		mutate(random, key, depth+1)
		mutate(random, value, depth+1)
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprint(random.IntN(3)))
	case reflect.Bool:
		v.SetBool(random.IntN(2) == 0)
	case reflect.Int32, reflect.Int64:
		v.SetInt(random.Int64N(3))
	case reflect.Uint8:
		v.SetUint(random.Uint64N(3))
	}
}

// mode has no JSON for its zero value, as many enums of programs.
type mode int

func (m mode) MarshalJSON() ([]byte, error) {
	if m == 0 {
		return nil, errors.New("no mode")
	}
	return []byte(`"on"`), nil
}

// A field that is the same in both objects may have no JSON once it is zero: the objects are then
// compared whole.
func TestApart_OfTypesWithoutAZeroValue(t *testing.T) {
	type settings struct {
		Mode  mode `json:"mode"`
		Modes struct {
			Mode mode `json:"mode"`
		} `json:"modes"`
		Size int `json:"size"`
	}
	before, after := &settings{Mode: 1, Size: 1}, &settings{Mode: 1, Size: 2}
	before.Modes.Mode, after.Modes.Mode = 1, 1
	assert.Equal(t, []string{".size"}, allDifferences(before, after))
	assert.Equal(t, []string{".size"}, differences(before, after))
}

// Objects that hold another one by a pointer share it with the cache: it is not changed.
func TestApart_ChangesNoObject(t *testing.T) {
	type holder struct{ *corev1.Pod }
	before, after := holder{pod(1, 1)}, holder{pod(1, 2)}
	apart(&before, &after)
	require.Equal(t, holder{pod(1, 1)}, before)
	require.Equal(t, holder{pod(1, 2)}, after)
	for _, row := range [][2]any{
		{nil, nil}, {before, after}, {&before, pod(1, 2)}, {(*corev1.Pod)(nil), pod(1, 2)},
	} {
		a, b := apart(row[0], row[1])
		require.Equal(t, row, [2]any{a, b})
	}
}
