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
	"strings"
)

// StartEtcd starts etcd again after a stop, with what it had stored, and returns when it is ready.
func (c *Cluster) StartEtcd(ctx context.Context) (err error) {
	c.etcd, err = startProcess(c.dir, "etcd", c.programs+"/etcd", append([]string{
		"--name=" + c.etcdName(),
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
		if err := c.ownEtcd(ctx); err != nil {
			return err
		}
		_, err := call(ctx, http.DefaultClient, http.MethodGet, c.etcdURL+"/readyz", nil)
		return err
	})
}

// etcdName is a name that no other cluster's etcd has.
func (c *Cluster) etcdName() string { return strings.ReplaceAll(c.dir, "/", "-") }

// ownEtcd fails if another cluster's etcd answers at the address: it was faster to listen there.
// (A connection to another cluster's API server fails, because its certificate is not trusted.)
func (c *Cluster) ownEtcd(ctx context.Context) error {
	reply, err := call(ctx, http.DefaultClient, http.MethodPost,
		c.etcdURL+"/v3/cluster/member/list", []byte("{}"))
	if err != nil {
		return err
	}
	if !bytes.Contains(reply, []byte(strconv.Quote(c.etcdName()))) {
		return fmt.Errorf("another etcd answers at %s: %s", c.etcdURL, reply)
	}
	return nil
}

// KillEtcd ends etcd as a crash would.
func (c *Cluster) KillEtcd() {
	if c.etcd != nil {
		c.etcd.Kill()
		c.etcd = nil
	}
}

// EtcdAddress is the host and port of etcd for API servers.
func (c *Cluster) EtcdAddress() string { return strings.TrimPrefix(c.etcdURL, "http://") }

// Compact makes etcd forget every revision before now, and notifies the API server, as another API
// server would.
//
// A LIST with resourceVersionMatch=Exact or an older continue token then gets 410 Gone, once the
// API server's cache has noticed (15 s) or the server has been restarted. A watch is served from
// the cache's own window of events, which only a restart ends.
func (c *Cluster) Compact(ctx context.Context) error {
	reply, err := c.etcdCall(ctx, "range", map[string]any{"key": compactKey})
	if err != nil {
		return err
	}
	revision := reply.Header.Revision + 1 // the next call's own revision, or an older one
	value := []byte(strconv.FormatInt(revision, 10))
	if _, err := c.etcdCall(ctx, "put",
		map[string]any{"key": compactKey, "value": value}); err != nil {
		return err
	}
	_, err = c.etcdCall(ctx, "compaction", map[string]any{"revision": revision, "physical": true})
	return err
}

// Stored returns the resourceVersions of the objects of a collection that etcd itself holds, by
// name. path is the collection's in etcd, such as "configmaps/NAMESPACE".
func (c *Cluster) Stored(ctx context.Context, path string) (map[string]uint64, error) {
	prefix := "/registry/" + path + "/"
	end := prefix[:len(prefix)-1] + "0" // "0" follows "/"
	reply, err := c.etcdCall(ctx, "range", map[string]any{
		"key": []byte(prefix), "range_end": []byte(end), "keys_only": true,
	})
	if err != nil {
		return nil, err
	}
	stored := map[string]uint64{}
	for _, kv := range reply.KVs {
		stored[strings.TrimPrefix(string(kv.Key), prefix)] = kv.Revision
	}
	return stored, nil
}

// compactKey is the key that holds the revision of the last compaction. API servers share it.
var compactKey = []byte("compact_rev_key")

// etcdReply is what the answers of etcd's gateway have in common. The gateway encodes bytes in
// base64, as encoding/json does.
type etcdReply struct {
	Header struct {
		Revision int64 `json:",string"`
	}
	KVs []struct {
		Key      []byte
		Revision uint64 `json:"mod_revision,string"`
	}
}

// etcdCall uses etcd's JSON gateway.
func (c *Cluster) etcdCall(ctx context.Context, method string, request any) (etcdReply, error) {
	var decoded etcdReply
	body, err := json.Marshal(request)
	if err != nil {
		return decoded, fmt.Errorf("encode %s: %w", method, err)
	}
	reply, err := call(ctx, http.DefaultClient, http.MethodPost, c.etcdURL+"/v3/kv/"+method, body)
	if err != nil {
		return decoded, err
	}
	if err := json.Unmarshal(reply, &decoded); err != nil {
		return decoded, fmt.Errorf("decode etcd's reply %q: %w", reply, err)
	}
	return decoded, nil
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
