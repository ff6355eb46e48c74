package fuzz

// source gives out the bytes that a cluster grows from. When they are used up it gives zeros, which always mean the
// least.
type source struct{ data []byte }

func (s *source) byte() byte {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return b
}

// upTo draws 0 to most.
func (s *source) upTo(most int) int { return int(s.byte()) % (most + 1) }

// one draws true once in so many times, and false from zeros.
func (s *source) one(in int) bool { return int(s.byte())%in == in-1 }

// number draws a whole number of any size, odd ones included.
func (s *source) number() int64 {
	switch s.upTo(9) {
	case 9:
		return int64(s.byte())<<56 | int64(s.byte())<<32 | int64(s.byte())
	case 8:
		return -int64(s.byte())
	}
	return int64(s.byte())
}

func choose[T any](s *source, from ...T) T { return from[int(s.byte())%len(from)] }
