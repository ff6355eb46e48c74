package disrupt

// SizeOf is how many pods a workload has.
func (r *EvictionRates) SizeOf(owner string) int { return r.workloadSize(owner) }
