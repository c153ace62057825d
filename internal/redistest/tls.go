package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// StartTLS starts a server that accepts only TLS. Its certificate is for 127.0.0.1
// and localhost, from an authority that is made for this server. The returned
// configuration for clients is in the server's Options too.
func StartTLS(t testing.TB, args ...string) (*Server, *tls.Config) {
	t.Helper()
	needBinary(t, serverBinary)
	certs, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	client := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	client.RootCAs.AddCert(certs.ca)
	s := start(t, launchConfig{
		binary: serverBinary,
		tls:    client,
		args: func(dir string, port int) ([]string, error) {
			files, err := certs.issue(dir)
			listen := []string{"--port", "0", "--tls-port", strconv.Itoa(port), "--tls-auth-clients", "no"}
			return append(serverArgs(dir), append(append(listen, files...), args...)...), err
		},
	})
	return s, client.Clone()
}

type authority struct {
	ca  *x509.Certificate
	key *ecdsa.PrivateKey
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificate(1, "tether test authority")
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	ca, err := x509.ParseCertificate(der)
	return &authority{ca: ca, key: key}, err
}

// issue writes a server certificate and its key to dir and returns the
// arguments that name them.
func (a *authority) issue(dir string) ([]string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificate(2, "tether test server")
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{"localhost"}
	template.IPAddresses = []net.IP{net.ParseIP(loopback)}
	der, err := x509.CreateCertificate(rand.Reader, template, a.ca, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}

	var args []string
	for _, f := range []struct {
		flag, kind string
		der        []byte
	}{
		{"tls-ca-cert-file", "CERTIFICATE", a.ca.Raw},
		{"tls-cert-file", "CERTIFICATE", der},
		{"tls-key-file", "PRIVATE KEY", keyDER},
	} {
		path := filepath.Join(dir, f.flag+".pem")
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.der}), 0o600); err != nil {
			return nil, err
		}
		args = append(args, "--"+f.flag, path)
	}
	return args, nil
}

func certificate(serial int64, name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(24 * time.Hour),
	}
}
