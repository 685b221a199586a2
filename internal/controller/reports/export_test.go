package reports

// What tests of the protocol itself need.
type FromEdge = fromEdge

var (
	Send        = send
	Description = description
)

// Waiting is the number of questions without an answer.
func (e *Edges) Waiting() (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range e.edges {
		n += len(c.waiting)
	}
	return n
}
