// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

func (c *Cluster) startEtcd(ctx context.Context) (err error) {
	c.etcd, err = startProcess(c.dir, "etcd", c.programs+"/etcd", append([]string{
		"--data-dir=" + c.path("etcd"),
		"--listen-client-urls=" + c.etcdURL,
		"--advertise-client-urls=" + c.etcdURL,
		"--listen-peer-urls=http://127.0.0.1:0",
		"--unsafe-no-fsync", // crashes of the machine are not tested
		"--log-level=warn",
	}, c.options.EtcdArgs...)...)
	if err != nil {
		return err
	}
	return waitReady(ctx, c.etcd, func(ctx context.Context) error {
		_, err := call(ctx, http.DefaultClient, http.MethodGet, c.etcdURL+"/readyz", nil)
		return err
	})
}

// Compact makes etcd forget every revision before now, and notifies the API server, as another API
// server would.
//
// A LIST with resourceVersionMatch=Exact or an older continue token then gets 410 Gone, once the
// API server's cache has noticed (15 s) or the server has been restarted. A watch is served from
// the cache's own window of events, which only a restart ends.
func (c *Cluster) Compact(ctx context.Context) error {
	revision, err := c.etcdCall(ctx, "range", map[string]any{"key": compactKey})
	if err != nil {
		return err
	}
	revision++ // the next call's own revision, or an older one
	value := []byte(strconv.FormatInt(revision, 10))
	if _, err := c.etcdCall(ctx, "put",
		map[string]any{"key": compactKey, "value": value}); err != nil {
		return err
	}
	_, err = c.etcdCall(ctx, "compaction", map[string]any{"revision": revision, "physical": true})
	return err
}

// compactKey is the key under which API servers share the revision of the last compaction.
var compactKey = []byte("compact_rev_key")

// etcdCall uses etcd's JSON gateway and returns etcd's current revision. The gateway encodes bytes
// in base64, as encoding/json does.
func (c *Cluster) etcdCall(ctx context.Context, method string,
	request any) (revision int64, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return 0, fmt.Errorf("encode %s: %w", method, err)
	}
	reply, err := call(ctx, http.DefaultClient, http.MethodPost, c.etcdURL+"/v3/kv/"+method, body)
	if err != nil {
		return 0, err
	}
	var decoded struct {
		Header struct {
			Revision int64 `json:",string"`
		}
	}
	if err := json.Unmarshal(reply, &decoded); err != nil {
		return 0, fmt.Errorf("decode etcd's reply %q: %w", reply, err)
	}
	return decoded.Header.Revision, nil
}

// call makes one HTTP request and returns the body of a 200.
func call(ctx context.Context, client *http.Client, method, url string,
	body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	reply, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read the reply of %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s %s: %s\n%s", method, url, response.Status, reply)
	}
	return reply, nil
}
