package memory

// expiryHeap holds entries of a cache, the one that expires first on top.
type expiryHeap []*cacheEntry

// Len is the number of entries.
func (h expiryHeap) Len() int { return len(h) }

// Less orders by expiry.
func (h expiryHeap) Less(i, j int) bool { return h[i].expiresAt.Before(h[j].expiresAt) }

// Swap exchanges two entries.
func (h expiryHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push adds an entry at the end.
func (h *expiryHeap) Push(x any) {
	e, ok := x.(*cacheEntry)
	if !ok {
		return // Only entries are pushed.
	}
	e.place = len(*h)
	*h = append(*h, e)
}

// Pop takes the last entry away.
func (h *expiryHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
