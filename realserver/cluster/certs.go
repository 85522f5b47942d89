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

// writeCerts writes a certificate for 127.0.0.1 and its key, valid for a day, and returns the
// certificate in PEM. The API server signs service account tokens with the same key: nothing
// outlives the cluster.
func writeCerts(dir string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate a key: %w", err)
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
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode the key: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	if err := os.WriteFile(filepath.Join(dir, certFile), text, 0o600); err != nil {
		return nil, err
	}
	keyText := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
	return text, os.WriteFile(filepath.Join(dir, keyFile), keyText, 0o600)
}

// Certificate returns the API server's certificate and key, for a stand-in that clients accept in
// its place.
func (c *Cluster) Certificate() (tls.Certificate, error) {
	return tls.LoadX509KeyPair(c.path(certFile), c.path(keyFile))
}
