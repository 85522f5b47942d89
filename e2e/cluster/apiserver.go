// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
)

// StartAPIServer starts the API server again after a stop, at the same address, and returns when it
// is ready.
//
// Its watch cache begins at this time: a watch from any earlier resourceVersion gets 410 Gone.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	address, err := url.Parse(c.url)
	if err != nil {
		return fmt.Errorf("parse our own address: %w", err)
	}
	args := append([]string{
		"--etcd-servers=" + c.etcdURL,
		"--bind-address=127.0.0.1",
		"--secure-port=" + address.Port(),
		"--tls-cert-file=" + c.path(certFile),
		"--tls-private-key-file=" + c.path(keyFile),
		"--service-account-issuer=" + c.url,
		"--service-account-signing-key-file=" + c.path(keyFile),
		"--service-account-key-file=" + c.path(keyFile),
		"--token-auth-file=" + c.path("tokens.csv"),
		"--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.0.0.0/24",
		// The kubernetes service has no endpoints: they are not needed.
		"--endpoint-reconciler-type=none",
		// No controller creates the accounts that this plugin demands of pods.
		"--disable-admission-plugins=ServiceAccount",
		"--etcd-compaction-interval=0", // Compact decides when history ends
	}, c.options.APIServerArgs...)
	c.apiserver, err = startProcess(c.dir, "kube-apiserver", c.programs+"/kube-apiserver", args...)
	if err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(c.Config(AdminToken))
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	defer client.CloseIdleConnections()
	return waitReady(ctx, c.apiserver, func(ctx context.Context) error {
		_, err := call(ctx, client, http.MethodGet, c.url+"/readyz", nil)
		return err
	})
}

// StopAPIServer asks the API server to end, as an upgrade would: open watches end cleanly.
func (c *Cluster) StopAPIServer() { c.endAPIServer((*Process).Stop) }

// KillAPIServer ends the API server as a crash would.
func (c *Cluster) KillAPIServer() { c.endAPIServer((*Process).Kill) }

func (c *Cluster) endAPIServer(end func(*Process)) {
	if c.apiserver != nil {
		end(c.apiserver)
		c.apiserver = nil
	}
}
