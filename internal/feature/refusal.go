package feature

import "github.com/headgate/headgate/internal/model"

// A Refusal is why NGINX does not get text of the administrator as it is.
type Refusal struct {
	// Reason is what is wrong, and Line where in the text, from 1; 0 if that is not known.
	Reason string
	Line   int
	// Kept is set where the last good text stays, and Waits where NGINX could not test it now: it
	// will be tested again.
	Kept, Waits bool
}

// KeptUntilStart is the effect of a refusal of a text that may control access while the last good one stays.
const KeptUntilStart = "what was there before stays; after the next start of Headgate, all requests are answered 503 until it is right"

// Refusals are by the places of the texts.
type Refusals map[model.Place]Refusal

// A TryWhole has NGINX test the whole of its configuration with these globals, beside all that
// Ingresses may add. Its error is a *RejectedError, an *UntestedError, or says what else is wrong
// with the texts in them.
type TryWhole func(model.Globals) error

// A RejectedError is what NGINX says of a configuration.
type RejectedError struct {
	Reason string
	// Place is the text that the fault is in, and Line its line there. Place is empty where NGINX
	// names no line, or one that is in no text.
	Place model.Place
	Line  int
}

func (e *RejectedError) Error() string { return e.Reason }
