package nginxconf

// firstDictionaries are large from the start: shared memory costs nothing
// until it is written to.
var firstDictionaries = Dictionaries{Number: 1, Units: 256 << 20, Versions: 64 << 20, Certificates: 128 << 20}

// unitBytes are what NGINX's allocator takes at most for a small unit, or a version, twice over.
const unitBytes = 512

// FirstDictionaries are those to start with for so many units, with payloads of so many bytes:
// large enough that the first load leaves nothing to grow.
func FirstDictionaries(units int, payloads int64) Dictionaries {
	first, small := firstDictionaries, int64(units)*unitBytes
	grow := func(size *int64, needed int64) {
		for *size < needed {
			*size *= 2
		}
	}
	grow(&first.Units, 4*payloads+small)
	grow(&first.Versions, small)
	grow(&first.Certificates, 4*payloads)
	return first
}

// Usage says how many bytes of each dictionary are in use.
type Usage struct {
	Units, Versions, Certificates int64
}

// The usage of a dictionary at which a larger one replaces it.
const fullPercent = 60

// Grown are larger dictionaries instead of d, doubled where at least 60 %
// is in use or where full says so (a push did not fit); nil if none is.
func (d Dictionaries) Grown(used Usage, full bool) *Dictionaries {
	grow := func(size *int64, used int64) bool {
		if !full && used*100 < *size*fullPercent {
			return false
		}
		*size *= 2
		return true
	}
	next := d
	units := grow(&next.Units, used.Units)
	versions := grow(&next.Versions, used.Versions)
	certificates := grow(&next.Certificates, used.Certificates)
	if !units && !versions && !certificates {
		return nil
	}
	next.Number++
	d.Previous = nil
	next.Previous = &d
	return &next
}
