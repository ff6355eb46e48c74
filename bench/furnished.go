package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tenon-sh/tenon/bench/internal/cluster"
	"github.com/tenon-sh/tenon/bench/internal/process"
	"github.com/tenon-sh/tenon/bench/internal/report"
)

// furnish puts a cluster there: nodes that the contestant launches and pods that are on them from the beginning, so
// that every contestant begins with the same. Then it gives the controller time to take in what there is.
func (s *stage) furnish(ctx context.Context, l *cluster.Layout) error {
	s.nodes = len(l.Hosts)
	if err := s.client.CreateClaims(ctx, l); err != nil {
		return err
	}
	if err := s.await(ctx, startPatience, s.watch.Initialized(s.nodes)); err != nil {
		return err
	}
	if err := s.client.CreateTenants(ctx, l); err != nil {
		return err
	}
	// Owners come once every pod is seen to run: one that knew of only some of them would make more.
	if err := s.await(ctx, startPatience, s.watch.Only(s.session.pods)); err != nil {
		return err
	}
	if err := s.client.CreateOwners(ctx, l); err != nil {
		return err
	}
	if err := s.client.Adopted(ctx); err != nil {
		return err
	}
	if err := s.await(ctx, startPatience, s.watch.Only(s.session.pods)); err != nil {
		return err
	}
	s.tell(fmt.Sprintf("%d nodes are there; letting things calm down for %s", s.nodes, calm))
	return sleep(ctx, calm)
}

// settle scales the pods down and measures until neither nodes nor pods change any more. The time without a change that
// proves it is not counted.
func (s *stage) settle(ctx context.Context) error {
	l := cluster.Mixed(s.session.pods, s.session.goal)
	if err := s.furnish(ctx, l); err != nil {
		return err
	}
	before := &report.Result{}
	if err := s.bill(ctx, before); err != nil {
		return err
	}
	stop := s.profileRush(ctx)
	result, err := s.shrink(ctx, l)
	stop()
	if err != nil {
		return err
	}
	if err := s.bill(ctx, result); err != nil {
		return err
	}
	result.CostBefore = before.Cost
	s.add(report.Settle, result)
	s.tell(fmt.Sprintf("from %d nodes and %.3f $/h to %d and %.3f with %d evictions; never fewer than %d pods ran",
		before.Nodes, before.Cost, result.Nodes, result.Cost, result.Evictions, result.LeastRunning))
	return nil
}

// shrink takes the pods away that are to leave, opens the budget and waits.
func (s *stage) shrink(ctx context.Context, l *cluster.Layout) (*report.Result, error) {
	m, err := s.begin()
	if err != nil {
		return nil, err
	}
	s.watch.Begin(m.began)
	if err := s.client.ScaleDown(ctx, l); err != nil {
		return nil, err
	}
	if err := s.client.OpenBudget(ctx); err != nil {
		return nil, err
	}
	// Whether a change was the last is known only later, so each is a possible end.
	var at time.Time
	var used process.Usage
	settled := s.watch.Settled(s.session.goal, s.options.quiet)
	err = s.await(ctx, s.options.timeout, func() (bool, string) {
		if since, _ := s.watch.Still(); since.After(at) {
			if u, err := s.controller.Usage(); err == nil {
				at, used = since, u
			}
		}
		return settled()
	})
	if err != nil {
		return nil, err
	}
	_, least := s.watch.Still()
	return &report.Result{
		Seconds: at.Sub(m.began).Seconds(), Load: m.load, Stages: s.watch.Stages(), Evictions: s.watch.Created(),
		LeastRunning: least,
		CPUSeconds:   used.CPUSeconds - m.used.CPUSeconds, RSSMegabytes: used.Megabytes,
		PeakMegabytes: used.PeakMegabytes,
	}, nil
}

// drift changes the pool's template and measures until every node has been replaced.
func (s *stage) drift(ctx context.Context) error {
	l := cluster.Uniform(s.session.goal, s.session.pods)
	if err := s.furnish(ctx, l); err != nil {
		return err
	}
	m, err := s.begin()
	if err != nil {
		return err
	}
	s.watch.BeginRoll(m.began, (len(l.Hosts)+9)/10)
	if err := s.client.ChangeTemplate(ctx); err != nil {
		return err
	}
	stop := s.profileRush(ctx)
	err = s.await(ctx, s.options.timeout, s.watch.Rolled(s.session.pods))
	stop()
	if err != nil {
		return err
	}
	result, err := m.end()
	if err != nil {
		return err
	}
	if err := s.bill(ctx, result); err != nil {
		return err
	}
	roll := s.watch.Roll()
	_, result.LeastRunning = s.watch.Still()
	result.Roll, result.Evictions, result.Stages = &roll, s.watch.Created(), s.watch.Stages()
	s.add(report.Drift, result)
	s.tell(fmt.Sprintf("the first node was chosen after %.2f s, at most %d were on their way out, the longest pause "+
		"was %.2f s; never fewer than %d pods ran",
		roll.First, roll.Most, roll.Pause, result.LeastRunning))
	return nil
}
