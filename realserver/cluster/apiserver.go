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
func (c *Cluster) StartAPIServer(ctx context.Context) (err error) {
	c.apiserver, err = c.startServer("kube-apiserver", c.url, c.etcdURL)
	if err != nil {
		return err
	}
	return c.waitServer(ctx, c.apiserver, c.url)
}

// StartReplica starts another API server, which reaches etcd at etcdAddress, and returns its
// address when it is ready. It has the same certificate. Stop ends it.
func (c *Cluster) StartReplica(
	ctx context.Context, etcdAddress string,
) (address string, err error) {
	if address, err = FreeAddress(); err != nil {
		return "", err
	}
	c.replica, err = c.startServer("replica", "https://"+address, "http://"+etcdAddress)
	if err != nil {
		return "", err
	}
	return address, c.waitServer(ctx, c.replica, "https://"+address)
}

// startServer starts an API server at serverURL that uses etcd at etcdURL.
func (c *Cluster) startServer(name, serverURL, etcdURL string) (*Process, error) {
	address, err := url.Parse(serverURL)
	if err != nil {
		return nil, fmt.Errorf("parse our own address: %w", err)
	}
	return startProcess(c.dir, name, c.programs+"/kube-apiserver", append([]string{
		"--etcd-servers=" + etcdURL,
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
		"--allow-privileged=true", // as in envtest and in clusters
		// The kubernetes service has no endpoints: they are not needed.
		"--endpoint-reconciler-type=none",
		// No controller creates the accounts that this plugin demands of pods.
		"--disable-admission-plugins=ServiceAccount",
		"--etcd-compaction-interval=0", // Compact decides when history ends
	}, c.options.APIServerArgs...)...)
}

// waitServer waits until an API server is ready.
func (c *Cluster) waitServer(ctx context.Context, p *Process, serverURL string) error {
	client, err := rest.HTTPClientFor(c.Config(AdminToken))
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	defer client.CloseIdleConnections()
	return waitReady(ctx, p, func(ctx context.Context) error {
		_, err := call(ctx, client, http.MethodGet, serverURL+"/readyz", nil)
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
