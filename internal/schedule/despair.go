package schedule

// despair answers for the pods of classes that found no place before, as long as nothing has happened that could help
// them. Pods whose rules look at other pods are always tried: a pod that comes may help them.
func (p *Placement) despair(before *Placement, help uint64, kinds []*kind) {
	p.help, p.hopeless = help, make(map[string]Unplaced)
	if before == nil || help == 0 || before.help != help {
		return
	}
	for _, k := range kinds {
		why, known := before.hopeless[k.class.Key]
		if !known || !steady(k) {
			continue
		}
		for _, pod := range k.take(len(k.pods)) {
			why.Pod = pod
			p.Unplaced = append(p.Unplaced, why)
		}
	}
}

// steady reports whether what the kind's pods find depends on nothing but nodes and what is for sale.
func steady(k *kind) bool { return len(k.carries) == 0 && len(k.exclusive) == 0 && len(k.counted) == 0 }

// remember keeps the reasons of the pods that found no place, by class, where no pod of the class found one: those that
// did will come again for the seats that they were given.
func (p *Placement) remember(l *ledger) {
	for i := range p.Unplaced {
		u := p.Unplaced[i]
		class := u.Pod.Class
		if len(u.Unsupported) > 0 || len(class.Rules) > 0 || len(u.Pod.Exclusive) > 0 || len(l.census.counted(u.Pod)) > 0 {
			continue
		}
		u.Pod = nil
		p.hopeless[class.Key] = u
	}
	if len(p.hopeless) == 0 {
		return
	}
	for i := range p.Assigned {
		delete(p.hopeless, p.Assigned[i].Pod.Class.Key)
	}
	for i := range p.Bins {
		for _, seat := range p.Bins[i].Seats {
			delete(p.hopeless, seat.Class)
		}
	}
}
