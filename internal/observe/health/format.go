package health

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"
)

// A writer writes families in a format. more is false for the first part of a family.
type writer interface {
	write(part *dto.MetricFamily, more bool) error
	end() error
}

func newWriter(out io.Writer, format expfmt.Format) writer {
	switch format.FormatType() {
	case expfmt.TypeOpenMetrics:
		return &openMetrics{lines: lines{out: out}}
	case expfmt.TypeProtoDelim:
		return &messages{out: out}
	}
	return &text{lines{out: out}}
}

// lines are formats that have lines of text.
type lines struct {
	out    io.Writer
	buffer bytes.Buffer
}

// copy writes what is in the buffer.
func (l *lines) copy(more bool) error {
	rest := l.buffer.Bytes()
	// Comments say the type of a family, and must be there once.
	for more && bytes.HasPrefix(rest, []byte("#")) {
		_, rest, _ = bytes.Cut(rest, []byte("\n"))
	}
	_, err := l.out.Write(rest)
	l.buffer.Reset()
	return err
}

// text is Prometheus' own format.
type text struct{ lines }

func (t *text) write(part *dto.MetricFamily, more bool) error {
	if _, err := expfmt.MetricFamilyToText(&t.buffer, part); err != nil {
		return err
	}
	return t.copy(more)
}

func (t *text) end() error { return nil }

// openMetrics has examples of requests with a trace. Prometheus prefers it, so series must be
// called as in text.
type openMetrics struct {
	lines
	short bytes.Buffer
}

func (o *openMetrics) write(part *dto.MetricFamily, more bool) error {
	// The format has only counters that end so: others would be renamed.
	if part.GetType() == dto.MetricType_COUNTER && !strings.HasSuffix(part.GetName(), "_total") {
		part = untyped(part)
	}
	if _, err := expfmt.MetricFamilyToOpenMetrics(&o.buffer, part); err != nil {
		return err
	}
	o.shorten()
	return o.copy(more)
}

// shorten writes bounds as text has them: le="1", not le="1.0". The label is the last one, and a
// quote in a value has a backslash before it.
func (o *openMetrics) shorten() {
	rest, end := o.buffer.Bytes(), []byte(`.0"} `)
	o.short.Reset()
	for {
		before, after, found := bytes.Cut(rest, end)
		o.short.Write(before)
		if !found {
			break
		}
		label := bytes.TrimRight(before, "0123456789")
		if bytes.HasSuffix(label, []byte(`le="`)) && len(label) < len(before) {
			o.short.WriteString(`"} `)
		} else {
			o.short.Write(end)
		}
		rest = after
	}
	o.buffer, o.short = o.short, o.buffer
}

func untyped(part *dto.MetricFamily) *dto.MetricFamily {
	whole := &dto.MetricFamily{Name: part.Name, Help: part.Help, Type: dto.MetricType_UNTYPED.Enum()}
	for _, m := range part.GetMetric() {
		whole.Metric = append(whole.Metric, &dto.Metric{Label: m.GetLabel(), Untyped: &dto.Untyped{Value: m.GetCounter().Value}})
	}
	return whole
}

func (o *openMetrics) end() error {
	_, err := expfmt.FinalizeOpenMetrics(o.out)
	return err
}

// messages is the format with a message for each family, which has native histograms. The length
// of a message comes first: it is kept until it is complete.
type messages struct {
	out     io.Writer
	message []byte
}

func (m *messages) write(part *dto.MetricFamily, more bool) (err error) {
	if more {
		// Messages that follow each other are one.
		part = &dto.MetricFamily{Metric: part.GetMetric()}
	} else if err := m.end(); err != nil {
		return err
	}
	m.message, err = proto.MarshalOptions{}.MarshalAppend(m.message, part)
	return err
}

func (m *messages) end() error {
	if len(m.message) == 0 {
		return nil
	}
	if _, err := m.out.Write(binary.AppendUvarint(nil, uint64(len(m.message)))); err != nil {
		return err
	}
	_, err := m.out.Write(m.message)
	m.message = m.message[:0]
	return err
}
