package disrupt

// Components joins things that have numbers into groups. The least number of a group stands for it.
type Components struct{ parent, size []int }

// NewComponents makes n groups of one each.
func NewComponents(n int) *Components {
	c := &Components{parent: make([]int, n), size: make([]int, n)}
	for i := range n {
		c.parent[i], c.size[i] = i, 1
	}
	return c
}

// Root is the number that stands for the group of i.
func (c *Components) Root(i int) int {
	for c.parent[i] != i {
		c.parent[i] = c.parent[c.parent[i]]
		i = c.parent[i]
	}
	return i
}

// Size is how many are in the group of i.
func (c *Components) Size(i int) int { return c.size[c.Root(i)] }

// Join makes one group of the groups of i and j.
func (c *Components) Join(i, j int) {
	a, b := c.Root(i), c.Root(j)
	if a != b {
		c.parent[max(a, b)] = min(a, b)
		c.size[min(a, b)] += c.size[max(a, b)]
	}
}
