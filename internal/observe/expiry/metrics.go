package expiry

import (
	"crypto/x509"
	"encoding/pem"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// parse parses the first certificate of a chain. One that can't be parsed is never
// served.
func parse(chain []byte) *certificate {
	block, _ := pem.Decode(chain)
	if block == nil {
		return &certificate{}
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return &certificate{}
	}
	f := &certificate{
		notAfter: c.NotAfter, serial: c.SerialNumber.String(), algorithm: c.PublicKeyAlgorithm.String(),
		issuer: text(c.Issuer.CommonName), identifier: text(c.Issuer.SerialNumber) + "-" + c.SerialNumber.String(),
	}
	if len(c.Issuer.Organization) > 0 {
		f.organization = text(c.Issuer.Organization[0])
	}
	return f
}

// text makes a valid label value of text that a tenant wrote into a certificate.
func text(s string) string {
	const maxLength = 256
	return strings.ToValidUTF8(strings.Clone(s[:min(len(s), maxLength)]), "\uFFFD")
}

var (
	expireTime = prometheus.NewDesc("nginx_ingress_controller_ssl_expire_time_seconds",
		"When the certificate of a host expires, as Unix time.",
		[]string{"namespace", "class", "host", "secret_name", "identifier"}, nil)
	certificateInfo = prometheus.NewDesc("nginx_ingress_controller_ssl_certificate_info",
		"1 for each host with the certificate of a Secret; the labels have the data of the certificate.",
		[]string{
			"namespace", "class", "host", "secret_name", "identifier",
			"issuer_organization", "issuer_common_name", "serial_number", "public_key_algorithm",
		}, nil)
)

// Describe and Collect make a Watch a prometheus.Collector.
func (w *Watch) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- expireTime
	descriptions <- certificateInfo
}

// Collect has metrics for each name with a certificate of a Secret.
func (w *Watch) Collect(metrics chan<- prometheus.Metric) {
	for _, m := range w.metrics() {
		metrics <- m
	}
}

func (w *Watch) metrics() []prometheus.Metric {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := make([]prometheus.Metric, 0, 2*len(w.names))
	for name, of := range w.names {
		c := w.certificates[of]
		namespace, secret, _ := strings.Cut(of.secret, "/")
		list = append(list,
			prometheus.MustNewConstMetric(expireTime, prometheus.GaugeValue, float64(c.notAfter.Unix()),
				namespace, w.class, name, secret, c.identifier),
			prometheus.MustNewConstMetric(certificateInfo, prometheus.GaugeValue, 1,
				namespace, w.class, name, secret, c.identifier, c.organization, c.issuer, c.serial, c.algorithm))
	}
	return list
}
