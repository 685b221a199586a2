package model

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// TicketKeys are keys for the tickets of TLS sessions. They don't print themselves.
type TicketKeys []Content

func (k TicketKeys) String() string {
	if len(k) == 0 {
		return ""
	}
	return fmt.Sprintf("[%d keys, redacted]", len(k))
}

// A key is for AES of 128 or 256 bits.
const (
	shortTicketKey = 48
	longTicketKey  = 80
	maxTicketKeys  = 8
)

// NewTicketKeys reads keys in base64, separated by commas. The error has nothing of them.
func NewTicketKeys(text string) (TicketKeys, error) {
	var list TicketKeys
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(entry)
		if err != nil || len(key) != shortTicketKey && len(key) != longTicketKey || len(list) == maxTicketKeys {
			return nil, fmt.Errorf("must be up to %d keys of %d or %d bytes in base64, separated by commas", maxTicketKeys, shortTicketKey, longTicketKey)
		}
		sum := sha256.Sum256(key)
		list = append(list, Content{Name: "ticket-" + hex.EncodeToString(sum[:10]), Bytes: key})
	}
	return list, nil
}
