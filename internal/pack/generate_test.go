package pack_test

import (
	"math"
	"math/rand"
	"slices"

	"github.com/tenon-sh/tenon/internal/pack"
	"github.com/tenon-sh/tenon/internal/require"
	"github.com/tenon-sh/tenon/internal/resource"
)

// recipe says what a generated problem has.
type recipe struct {
	stacks, offers, most int // most pods to a stack
	sites                bool
	marks, shelves       bool
	stocks, suits, likes bool
}

// everything has it all, in proportions that vary with the seed.
func everything(r *rand.Rand) recipe {
	yes := func() bool { return r.Intn(3) == 0 }
	return recipe{stacks: 1 + r.Intn(12), offers: 1 + r.Intn(12), most: 1 + r.Intn(30), sites: yes(),
		marks: yes(), shelves: yes(), stocks: yes(), suits: yes(), likes: yes()}
}

func generate(r *rand.Rand, c recipe) *pack.Problem {
	p := &pack.Problem{Shelves: []pack.Shelf{{Nodes: -1}}}
	for range c.offers {
		o := pack.Offer{Stock: -1}
		o.Room[resource.CPU], o.Room[resource.Memory] = int64(1+r.Intn(16))*1000, int64(1+r.Intn(16))<<30
		o.Room[resource.Pods] = int64(1 + r.Intn(20))
		if r.Intn(6) == 0 {
			o.Room[5] = int64(r.Intn(5) - 1)
		}
		o.Charge = o.Room.Floor()
		size := float64(o.Room[resource.CPU])/1000 + float64(o.Room[resource.Memory]>>30)/4
		o.Price = math.Round(size*(0.5+r.Float64())*100) / 100
		p.Offers = append(p.Offers, o)
	}
	p.Sites = []require.Bits{require.AllBits(c.offers)}
	if c.sites {
		for range 3 {
			b := require.NewBits(c.offers)
			for o := range c.offers {
				if r.Intn(2) == 0 {
					b.Set(o)
				}
			}
			p.Sites = append(p.Sites, b)
		}
	}
	for range c.stacks {
		s := pack.Stack{Count: 1 + r.Intn(c.most), Like: -1, Rank: int32(r.Intn(3))}
		s.Need[resource.CPU], s.Need[resource.Memory] = int64(r.Intn(9))*500, int64(r.Intn(9))<<29
		s.Need[resource.Pods] = 1
		if r.Intn(12) == 0 {
			s.Need[5] = int64(1 + r.Intn(2))
		}
		s.Site = r.Intn(len(p.Sites))
		if r.Intn(2) == 0 {
			s.Loose = s.Site
		}
		p.Stacks = append(p.Stacks, s)
	}
	c.decorate(r, p)
	return p
}

func (c recipe) decorate(r *rand.Rand, p *pack.Problem) {
	if c.marks {
		for i := range p.Stacks {
			markStack(r, &p.Stacks[i])
		}
	}
	if c.shelves {
		p.Shelves = append(p.Shelves, pack.Shelf{Nodes: int64(r.Intn(8) - 1)}, pack.Shelf{Nodes: -1})
		p.Shelves[2].Bound[resource.CPU], p.Shelves[2].Left[resource.CPU] = true, int64(r.Intn(60)-3)*1000
		for i := range p.Offers {
			p.Offers[i].Shelf = r.Intn(3)
		}
	}
	if c.stocks {
		p.Stocks = []int{r.Intn(3), r.Intn(5)}
		for i := range p.Offers {
			p.Offers[i].Stock = r.Intn(3) - 1
		}
	}
	if c.likes {
		for range 2 {
			row := make([]float32, len(p.Offers))
			for o := range row {
				row[o] = float32(r.Intn(3)) / 2
			}
			p.Likes = append(p.Likes, row)
		}
		for i := range p.Stacks {
			p.Stacks[i].Like = r.Intn(3) - 1
		}
	}
	if c.suits {
		bad, most := r.Intn(len(p.Offers)), 1+r.Intn(10)
		p.Suits = func(offer int, content []pack.Part) bool {
			even, odd, n := false, false, 0
			for _, part := range content {
				even, odd = even || part.Stack%2 == 0, odd || part.Stack%2 == 1
				n += part.Count
			}
			return offer != bad && n <= most && !(even && odd)
		}
	}
}

func markStack(r *rand.Rand, s *pack.Stack) {
	for id := range int32(3) {
		switch r.Intn(8) {
		case 0:
			s.Shuns = append(s.Shuns, id)
		case 1:
			s.Shunned = append(s.Shunned, id)
		case 2:
			s.Shuns, s.Shunned = append(s.Shuns, id), append(s.Shunned, id)
		}
	}
	for id := int32(3); id < 6; id++ {
		if r.Intn(4) == 0 {
			s.Caps = append(s.Caps, pack.Cap{ID: id, Most: int32(r.Intn(4))})
		}
		if r.Intn(3) == 0 {
			s.Counts = append(s.Counts, id)
		}
	}
	slices.Sort(s.Shuns)
}
