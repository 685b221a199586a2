package traffic

// HostRequests are the numbers of requests of each host's routes, by the class of the status:
// others, 1xx, 2xx and so on. The key is the host's name, "" for what is counted together or
// has no Ingress.
func (t *Table) HostRequests() map[string][6]uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[string][6]uint64, len(t.units))
	for unit, list := range t.units {
		var counts [6]uint64
		for l := range list {
			class := 0
			if l.status != "" && l.status[0] >= '1' && l.status[0] <= '5' {
				class = int(l.status[0] - '0')
			}
			counts[class] += t.series[l].counts[0]
		}
		all[unit] = counts
	}
	return all
}
