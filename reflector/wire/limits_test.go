// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/internal/decode"
	"example.com/informerstack/internal/readahead"
	"example.com/informerstack/internal/tools/answers"
)

// An item or event may be as long as Limits.ObjectBytes and no longer, however it arrives.
func TestLimits_ObjectBytesIsExact(t *testing.T) {
	pod := v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("a", 1000)}}
	inJSON, err := json.Marshal(pod)
	require.NoError(t, err)
	inProtobuf, err := pod.Marshal()
	require.NoError(t, err)
	events := answers.Samples()[:1]
	events[0].Object = &pod
	list := &v1.PodList{Items: []v1.Pod{pod, pod}}
	isJSON := func(contentType string) bool { return contentType == answers.JSON }

	for _, contentType := range []string{answers.JSON, answers.Protobuf} {
		for _, readBytes := range []int{1, 7, 64, 1 << 20} {
			t.Run(fmt.Sprint(contentType, " ", readBytes), func(t *testing.T) {
				limit := len(inProtobuf)
				if isJSON(contentType) {
					limit = len(inJSON)
				}
				body := answers.List(t, contentType, list)
				read := func(limit int) error {
					in := &chunked{data: body, size: readBytes}
					options := Options{Limits: Limits{ObjectBytes: limit}}
					_, err := ReadList(in, newPod, options, ignore)
					return err
				}
				require.NoError(t, read(limit))
				require.ErrorIs(t, read(limit-1), ErrTooLarge)

				body = answers.Events(t, contentType, events[0], events[0])
				limit = len(body)/2 - 4
				if isJSON(contentType) {
					limit = len(body)/2 - len("\n")
				}
				count := func(limit int) int {
					in := &chunked{data: body, size: readBytes}
					got := receive(in, newPod, Options{Limits: Limits{ObjectBytes: limit}})
					if len(got) == 1 {
						require.Contains(t, got[0].Object.(*metav1.Status).Message,
							"Limits.ObjectBytes")
					}
					return len(got)
				}
				require.Equal(t, 2, count(limit))
				require.Equal(t, 1, count(limit-1))
			})
		}
	}
}

// A list may be as long as Limits.ListBytes.
func TestLimits_ListBytesIsExact(t *testing.T) {
	body := answers.Pods(t, 100)
	read := func(limit int) error {
		for _, in := range inEveryWay(body) {
			options := Options{Limits: Limits{ListBytes: int64(limit)}}
			if _, err := ReadList(in, newPod, options, ignore); err != nil {
				return err
			}
		}
		return nil
	}
	require.NoError(t, read(len(body)))
	require.ErrorIs(t, read(len(body)-1), ErrTooLarge)
}

// Fields that a list does not have take no memory once they are read.
func TestReadList_UnknownFieldsAreNotKept(t *testing.T) {
	var body strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&body, `%c"field-%d":"a"`, "{,"[min(i, 1)], i)
	}
	l := &list{decoder: newDecoder(newPod, Options{}), inStatus: map[string]json.RawMessage{}}
	in := readahead.New(strings.NewReader(body.String()+"}"), nil)
	defer in.Stop()
	require.NoError(t, l.read(in, 1<<20))
	require.Empty(t, l.inStatus)
}

// listInProtobuf is a PodList that consists of fields.
func listInProtobuf(fields []byte) []byte {
	of, err := (&runtime.TypeMeta{APIVersion: "v1", Kind: "PodList"}).Marshal()
	if err != nil {
		panic(err)
	}
	body := protowire.AppendTag([]byte(decode.Magic), unknownTypeMeta, protowire.BytesType)
	body = protowire.AppendBytes(body, of)
	body = protowire.AppendTag(body, unknownRaw, protowire.BytesType)
	return protowire.AppendBytes(body, fields)
}

// A length that exceeds the limit is refused before the bytes arrive.
func TestReadList_ProtobufLengths(t *testing.T) {
	for _, length := range []uint64{16<<20 + 1, math.MaxInt64 - 8, math.MaxInt64, math.MaxUint64} {
		field := protowire.AppendTag(nil, listItems, protowire.BytesType)
		field = protowire.AppendVarint(field, length)
		body := listInProtobuf(nil)
		body = protowire.AppendVarint(body[:len(body)-1], math.MaxInt64) // of the list
		body = append(body, field...)
		in := io.MultiReader(bytes.NewReader(body), iotest.ErrReader(io.ErrClosedPipe))
		_, err := ReadList(in, newPod, Options{}, ignore)
		require.Error(t, err)
		require.NotErrorIs(t, err, io.ErrClosedPipe, "%d", length)
	}
}

// Fields that a newer server may add are skipped, whatever their type is.
func TestReadList_ProtobufUnknownFields(t *testing.T) {
	var fields []byte
	add := func(number protowire.Number, kind protowire.Type, value ...byte) {
		fields = protowire.AppendTag(fields, number, kind)
		fields = append(fields, value...)
	}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	item, err := pod.Marshal()
	require.NoError(t, err)
	add(3, protowire.VarintType, 0xff, 0x01)
	add(4, protowire.Fixed32Type, 1, 2, 3, 4)
	add(listItems, protowire.BytesType, append([]byte{byte(len(item))}, item...)...)
	add(5, protowire.Fixed64Type, 1, 2, 3, 4, 5, 6, 7, 8)
	add(6, protowire.BytesType, 2, 'a', 'b')
	body := append(listInProtobuf(fields), protowire.AppendTag(nil, 9, protowire.VarintType)...)
	body = append(body, 1)

	want := v1.PodList{}
	require.NoError(t, want.Unmarshal(fields))
	for size := 1; size < 20; size++ {
		items, _, err := decodeAll(&chunked{data: body, size: size}, newPod)
		require.NoError(t, err)
		require.Equal(t, []runtime.Object{&want.Items[0]}, items)
	}

	for name, bad := range map[string][]byte{
		"items of another type": protowire.AppendVarint(
			protowire.AppendTag(nil, listItems, protowire.VarintType), 1),
		"field 0":          {0<<3 | 2, 0},
		"a long varint":    bytes.Repeat([]byte{0xff}, 11),
		"longer than list": {listItems<<3 | 2, 100},
		"bad item":         {listItems<<3 | 2, 2, 0x0a, 100},
	} {
		_, _, err := decodeAll(bytes.NewReader(listInProtobuf(bad)), newPod)
		require.Error(t, err, name)
		require.Error(t, new(v1.PodList).Unmarshal(bad), name)
	}
}

// A field of a list does not reach beyond the list.
func TestReadList_ProtobufFieldBeyondItsList(t *testing.T) {
	body := listInProtobuf([]byte{listItems<<3 | 2, 2}) // its two bytes are another field
	_, _, err := decodeAll(bytes.NewReader(append(body, 9<<3|2, 0)), newPod)
	require.ErrorContains(t, err, "longer than its list")
}

// A list that is cut anywhere is an error: what is missing would be taken for deleted.
func TestReadList_CutAnywhere(t *testing.T) {
	full := &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}
	for _, name := range []string{"a", "b"} {
		full.Items = append(full.Items, v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, list := range []*v1.PodList{full, {}} {
		for _, contentType := range []string{answers.JSON, answers.Protobuf} {
			body := answers.List(t, contentType, list)
			complete := len(bytes.TrimRight(body, "\n"))
			if contentType == answers.Protobuf {
				complete -= len("\x1a\x00\x22\x00") // empty contentEncoding and contentType
			}
			for end := range complete {
				_, _, err := decodeAll(bytes.NewReader(body[:end]), newPod)
				require.Error(t, err, "%s cut at %d of %d", contentType, end, complete)
			}
		}
	}
}

// embedded is a type without metadata, or with it.
type embedded struct {
	metav1.TypeMeta    `json:",inline"`
	*metav1.ObjectMeta `json:"metadata,omitempty"`
}

func (e *embedded) DeepCopyObject() runtime.Object { return e }

func (e *embedded) GetObjectKind() schema.ObjectKind { return &e.TypeMeta }

func TestReadList_NoMetadata(t *testing.T) {
	items, _, err := decodeAll(strings.NewReader(`{"kind":"embeddedList","items":[{}]}`),
		func() runtime.Object { return &embedded{} })
	require.NoError(t, err)
	require.Equal(t, []runtime.Object{&embedded{}}, items)
}

// Limits that make no sense are the defaults.
func TestLimits_Defaults(t *testing.T) {
	defaults := Limits{ObjectBytes: 16 << 20, ListBytes: 16 << 30}
	for _, l := range []Limits{{}, {ObjectBytes: -1, ListBytes: -1}} {
		require.Equal(t, defaults, l.orDefaults())
	}
}
