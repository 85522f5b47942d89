// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// The files that writeCerts writes. The serving certificate is its own authority, so clients trust
// it directly.
const (
	certFile = "apiserver.crt"
	keyFile  = "apiserver.key"
)

// writeCerts writes a certificate for 127.0.0.1 and its key, valid for a day. The API server signs
// service account tokens with the same key: nothing outlives the cluster.
func writeCerts(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generate a key: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "throw-away"},
		NotBefore:             now.Add(-time.Hour), // clocks differ
		NotAfter:              now.Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return fmt.Errorf("sign a certificate: %w", err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode the key: %w", err)
	}
	if err := writePEM(filepath.Join(dir, certFile), "CERTIFICATE", cert); err != nil {
		return err
	}
	return writePEM(filepath.Join(dir, keyFile), "EC PRIVATE KEY", keyDER)
}

// Certificate returns the API server's certificate and key, for a stand-in that clients accept in
// its place.
func (c *Cluster) Certificate() (tls.Certificate, error) {
	return tls.LoadX509KeyPair(c.path(certFile), c.path(keyFile))
}

func writePEM(file, kind string, der []byte) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
