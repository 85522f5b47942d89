// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"example.com/informerstack/internal/tools/answers"
)

type (
	word       string
	upper      string                  // has UnmarshalText
	texts      map[string]*word        // has UnmarshalJSON
	onlyV2     struct{ A int }         // has UnmarshalJSONFrom
	timeRef    *metav1.Time            // has no methods
	unnamed    = struct{ metav1.Time } // has those of Time
	promoted   struct{ metav1.MicroTime }
	plainPart  struct{ P, Q []int32 }
	recursive  struct{ Children map[string]recursive }
	pairOfText struct {
		Upper upper
		Word  *word
	}
)

func (u *upper) UnmarshalText(text []byte) error {
	*u = upper(strings.ToUpper(string(text)))
	return nil
}

func (t *texts) UnmarshalJSON(raw []byte) error {
	*t = texts{"raw": (*word)(new(string(raw)))}
	return nil
}

func (o *onlyV2) UnmarshalJSONFrom(in *jsontext.Decoder) error {
	o.A = -1
	return in.SkipValue()
}

// leaves are the types that random types are made of.
var leaves = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[string](), reflect.TypeFor[int8](),
	reflect.TypeFor[int](), reflect.TypeFor[int64](), reflect.TypeFor[uint16](),
	reflect.TypeFor[uint64](), reflect.TypeFor[float32](), reflect.TypeFor[float64](),
	reflect.TypeFor[[]byte](), reflect.TypeFor[uintptr](), reflect.TypeFor[[2]int](),
	reflect.TypeFor[any](), reflect.TypeFor[time.Duration](), reflect.TypeFor[json.Number](),
	reflect.TypeFor[json.RawMessage](), reflect.TypeFor[net.IP](), reflect.TypeFor[word](),
	reflect.TypeFor[upper](), reflect.TypeFor[texts](), reflect.TypeFor[onlyV2](),
	reflect.TypeFor[timeRef](), reflect.TypeFor[unnamed](), reflect.TypeFor[promoted](),
	reflect.TypeFor[plainPart](), reflect.TypeFor[recursive](), reflect.TypeFor[pairOfText](),
	reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](),
	reflect.TypeFor[metav1.Duration](), reflect.TypeFor[metav1.FieldsV1](),
	reflect.TypeFor[metav1.LabelSelector](), reflect.TypeFor[metav1.ObjectMeta](),
	reflect.TypeFor[intstr.IntOrString](), reflect.TypeFor[resource.Quantity](),
	reflect.TypeFor[runtime.RawExtension](),
}

// randomType returns a type of at most depth levels.
func randomType(random *rand.Rand, depth int) (t reflect.Type) {
	leaf := leaves[random.Intn(len(leaves))]
	if depth == 0 {
		return leaf
	}
	switch random.Intn(6) {
	case 0:
		return reflect.PointerTo(randomType(random, depth-1))
	case 1:
		return reflect.SliceOf(randomType(random, depth-1))
	case 2:
		keys := []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[word](),
			reflect.TypeFor[upper](), reflect.TypeFor[int]()}
		return reflect.MapOf(keys[random.Intn(len(keys))], randomType(random, depth-1))
	case 3:
		return leaf
	}
	return randomStruct(random, depth)
}

var randomTags = []string{
	`json:"a"`, `json:"a,omitempty"`, `json:"b,omitzero"`, `json:"c-d.e_$"`, `json:"B"`, ``, ``,
	`json:"-"`, `json:"-,"`, `json:",omitempty"`, `json:",inline"`, `json:"f,string"`,
	`json:"'g'"`, `json:"h i"`, `json:"ü"`, `json:"p"`, `json:"j,"`, `json:"k,omitzero,omitempty"`,
}

func randomStruct(random *rand.Rand, depth int) (t reflect.Type) {
	defer func() {
		if recover() != nil { // reflect does not embed every type
			t = reflect.TypeFor[plainPart]()
		}
	}()
	var fields []reflect.StructField
	for i := range 1 + random.Intn(4) {
		f := reflect.StructField{
			Name: string(rune('P' + i)), Type: randomType(random, depth-1),
			Tag: reflect.StructTag(randomTags[random.Intn(len(randomTags))]),
		}
		if f.Type.Name() != "" && f.Type.Name()[0] < 'a' && random.Intn(3) == 0 {
			f.Name, f.Anonymous = f.Type.Name(), true
		}
		fields = append(fields, f)
	}
	return reflect.StructOf(fields)
}

var names = []string{"a", "b", "c-d.e_$", "B", "A", "P", "Q", "R", "S", "p", "-", "f", "g", "h i",
	"ü", "j", "k", "Children", "raw", "matchLabels", "name", "labels", "Time", "u\u0000\\\"\n"}

// randomText returns a JSON text that often fits t.
func randomText(random *rand.Rand, t reflect.Type, depth int) string {
	if depth == 0 || random.Intn(8) == 0 {
		return answers.Replacements[random.Intn(len(answers.Replacements))]
	}
	switch t.Kind() {
	case reflect.Pointer:
		return randomText(random, t.Elem(), depth)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return `"QUJD"`
		}
		var elements []string
		for range random.Intn(4) {
			elements = append(elements, randomText(random, t.Elem(), depth-1))
		}
		return "[" + strings.Join(elements, " ,") + "]"
	case reflect.Map, reflect.Struct:
		return randomObject(random, t, depth)
	case reflect.String:
		return []string{`"x"`, `"\u00fc\/"`, `""`, `"5m"`, `"1.5Gi"`}[random.Intn(5)]
	case reflect.Bool:
		return "true"
	}
	return []string{"0", "-0", "1", "-7", "127", "128", "1.5", "-0.0", "1e2", "65536", "4294967295",
		"9007199254740993", "9223372036854775807", "3.5e38"}[random.Intn(14)]
}

func randomObject(random *rand.Rand, t reflect.Type, depth int) string {
	var members []string
	member := func(name string, of reflect.Type) {
		key, _ := json.Marshal(name)
		if random.Intn(9) == 0 && name != "" {
			key = []byte(fmt.Sprintf(`"\u%04x%s`, name[0], key[2:]))
		}
		members = append(members, string(key)+" : "+randomText(random, of, depth-1))
	}
	if t.Kind() == reflect.Map {
		for range random.Intn(3) {
			member(names[random.Intn(len(names))], t.Elem())
		}
	} else {
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				name = f.Name
			}
			if random.Intn(6) > 0 {
				member(name, f.Type)
			}
		}
		if random.Intn(4) == 0 {
			member(names[random.Intn(len(names))], reflect.TypeFor[word]())
		}
	}
	random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, ", ") + " }"
}

// J1 for random types: what v2 decodes into a plain type has the result of the decoder of
// Kubernetes.
func TestJSON_RandomTypes(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	plain, byV2 := 0, 0
	for range 8000 {
		of := randomStruct(random, 1+random.Intn(4))
		if !isPlain(of, map[reflect.Type]bool{}) {
			continue
		}
		plain++
		for range 10 {
			raw := []byte(randomText(random, of, 6))
			got, want := reflect.New(of).Interface(), reflect.New(of).Interface()
			if jsonv2.Unmarshal(raw, got) != nil {
				continue
			}
			byV2++
			require.NoError(t, utiljson.Unmarshal(raw, want), "%v: %s", of, raw)
			require.True(t, reflect.DeepEqual(want, got), "%v: %s", of, raw)
		}
	}
	require.Greater(t, plain, 1000)
	require.Greater(t, byV2, 2*plain)
}
