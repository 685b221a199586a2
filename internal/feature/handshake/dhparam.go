package handshake

import (
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"

	"github.com/headgate/headgate/internal/feature"
	"github.com/headgate/headgate/internal/finding"
	"github.com/headgate/headgate/internal/model"
	"github.com/headgate/headgate/internal/model/directive"
)

const (
	dhFile = "dhparam.pem"
	// minDHBits is where OpenSSL's own limit begins. That of the machine may be higher.
	minDHBits, maxDHBits = 1024, 10000
)

var dhParam = feature.Setting[feature.ObjectName]{
	Key: "ssl-dh-param", Parse: feature.Optional(feature.SecretIn), Refers: feature.Secret, Scope: feature.ScopeProcess,
	Doc: "A Secret with DH parameters in `" + dhFile + "`, for ciphers of TLS 1.2 and earlier that begin with DHE. Without it, these ciphers are not offered.",
}

// dhParams are parameters as PEM, or why there are none.
type dhParams struct {
	pem []byte
	bad error
}

// readDHParams reads PKCS #3 parameters. What it returns has nothing but these: a Secret may have a key beside them.
func readDHParams(data map[string][]byte) dhParams {
	for rest := data[dhFile]; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return dhParams{bad: errors.New(dhFile + ": must be DH PARAMETERS as PEM")}
		}
		if block.Type != "DH PARAMETERS" {
			continue
		}
		if err := checkDHParams(block.Bytes); err != nil {
			return dhParams{bad: fmt.Errorf("%s: %w", dhFile, err)}
		}
		return dhParams{pem: pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})}
	}
}

func checkDHParams(der []byte) error {
	var p struct {
		Prime, Generator *big.Int
		Length           int `asn1:"optional"`
	}
	if rest, err := asn1.Unmarshal(der, &p); err != nil || len(rest) > 0 {
		return errors.New("must be DH PARAMETERS as PEM")
	}
	if bits := p.Prime.BitLen(); p.Prime.Sign() <= 0 || bits < minDHBits || bits > maxDHBits {
		return fmt.Errorf("must be DH parameters of %d to %d bits", minDHBits, maxDHBits)
	}
	one := big.NewInt(1)
	if p.Prime.Bit(0) == 0 || p.Generator.Cmp(one) <= 0 || p.Generator.Cmp(new(big.Int).Sub(p.Prime, one)) >= 0 {
		return errors.New("must be DH parameters with an odd prime and a generator less than that")
	}
	return nil
}

// dhFor are the parameters that NGINX takes, none otherwise.
func dhFor(v feature.Values, out *feature.ProcessOut) model.Content {
	params, ok := feature.FromSecret(v, dhParam, "dh", readDHParams)
	if !ok {
		return model.Content{}
	}
	if params.bad != nil {
		out.Reject(dhParam, finding.InvalidValue, fmt.Sprintf("invalid Secret %s: %v", dhParam.Get(v), params.bad))
		return model.Content{}
	}
	content := model.NewContent(params.pem)
	trial := feature.Trial{
		Files: []model.Content{content},
		Lines: func(folder string) (http, location []string) {
			// NGINX reads the file only where there may be a certificate.
			http = []string{"ssl_certificate $remote_addr;", "ssl_certificate_key $remote_addr;"}
			if ciphers := allCiphers.Get(v).String(); ciphers != "" {
				http = append(http, "ssl_ciphers "+ciphers+";")
			}
			return append(http, fmt.Sprintf("ssl_dhparam %s/%s/%s;", folder, directive.Files, content.Name)), nil
		},
	}
	if err := v.Try(trial); err != nil {
		out.RejectTried(dhParam, dhParam.Get(v).String(), err)
		return model.Content{}
	}
	return content
}
