package main

import (
	"context"
	"crypto/md5"
	"fmt"
	"net/http"
	"regexp"
)

// countGuards counts requests that pass guards, and, unless the task is short, the same by hand.
func (s *stage) countGuards(ctx context.Context, name string, t instructionTask, counted Instructions) error {
	auth, end, err := startAuthService()
	if err != nil {
		return err
	}
	defer end()
	for _, g := range guardGroups() {
		if g.uncounted {
			continue
		}
		if err := s.countGuardGroup(ctx, name+"-"+g.name, g, auth, t, counted); err != nil {
			return fmt.Errorf("guards, %s: %w", g.name, err)
		}
	}
	return nil
}

func (s *stage) countGuardGroup(ctx context.Context, name string, g guardGroup, auth int, t instructionTask, counted Instructions) error {
	at, err := s.prepareGuards(name, g, auth)
	if err != nil {
		return err
	}
	c, stop, err := s.startCounter(ctx, at)
	if err != nil {
		return err
	}
	defer stop()
	c.profiles = t.profiles
	if err := c.countAll(g.kinds(), counted.Kinds); err != nil || t.short {
		return err
	}
	values, hands, err := s.guardsByHand(name+"-by-hand", g, at, auth)
	if err != nil {
		return err
	}
	hand, end, err := s.startCountedByHand(ctx, name+"-by-hand", values)
	if err != nil {
		return err
	}
	defer end()
	hand.profiles = t.profiles
	for i, kind := range g.kinds() {
		if row := g.rows[i]; len(row.zones)+len(row.server)+len(row.location) == 0 {
			continue
		}
		at, byHand := *hand, kind
		at.port, byHand.name = hands[i].Port, "by hand: "+kind.name
		if counted.Hands[kind.name], err = at.count(byHand); err != nil {
			return fmt.Errorf("%s: %w", byHand.name, err)
		}
	}
	return nil
}

// signer returns what makes the header by which one request after the other is signed, for
// the nonce of one challenge.
func signer(port int, host, path string) (sign func() string, err error) {
	request, err := http.NewRequest(http.MethodGet, "http://"+local(port)+path, nil)
	if err != nil {
		return nil, err
	}
	request.Host = host
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	response.Body.Close()
	challenge := response.Header.Get("WWW-Authenticate")
	found := regexp.MustCompile(`nonce="([^"]+)"`).FindStringSubmatch(challenge)
	if found == nil {
		return nil, fmt.Errorf("status %d and the challenge %q instead of one with a nonce", response.StatusCode, challenge)
	}
	hash := func(text string) string { return fmt.Sprintf("%x", md5.Sum([]byte(text))) }
	user, asked := hash("user:"+realm+":pass"), hash("GET:"+path)
	count := 0
	return func() string {
		count++
		answer := hash(fmt.Sprintf("%s:%s:%08x:bench:auth:%s", user, found[1], count, asked))
		return fmt.Sprintf(`Authorization: Digest username="user", realm="%s", uri="%s", nonce="%s", cnonce="bench", qop=auth, nc=%08x, response="%s"`,
			realm, path, found[1], count, answer)
	}, nil
}
