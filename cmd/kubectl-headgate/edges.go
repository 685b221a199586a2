package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate/headgate/internal/command/pod"
	"github.com/headgate/headgate/internal/finding"
)

// An edge is what is shown in a row of what `dbg edges -o json` prints.
type edge struct {
	Name         string            `json:"name"`
	Group        string            `json:"group"`
	State        string            `json:"state"`
	NGINX        string            `json:"nginx"`
	Release      string            `json:"release"`
	Since        time.Time         `json:"since"`
	Findings     []finding.Finding `json:"findings"`
	MoreFindings int               `json:"more_findings"`
	// Control is the pod that it is connected to.
	Control string `json:"control"`
}

func (p *plugin) edgesCommand() *cobra.Command {
	pods, out := podFlags{control: true}, format("")
	command := &cobra.Command{
		Use:   "edges",
		Short: "List the edges of a control, with their state",
		Long: "List the edges, where control and edges are apart: the pod, the state of its NGINX, and the number of findings about this edge\n" +
			"alone. With -o, the findings are shown too. An edge is connected to one control, so all of them are asked; with --pod, one.",
		Example: p.examples("All edges", "edges -n headgate", "What is wrong there", "edges -o yaml", "What NGINX has in one of them", "backends --pod EDGE"),
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := out.check(); err != nil {
				return err
			}
			list, err := p.edges(command.Context(), pods)
			if err != nil {
				return err
			}
			if out != "" {
				return out.write(p.Out, map[string]any{"edges": list})
			}
			return p.printEdges(list)
		},
	}
	out.addFlag(command)
	p.addPodFlags(command, &pods)
	return command
}

// edges asks all controls for their edges. They have all fields that a control says, and that of the control.
func (p *plugin) edges(ctx context.Context, o podFlags) ([]map[string]any, error) {
	s, choice, err := p.choose(o)
	if err != nil {
		return nil, err
	}
	controls, err := choice.FindAll(ctx, s.client, s.namespace)
	if err != nil {
		return nil, err
	}
	list, answered := []map[string]any{}, false
	for _, control := range controls {
		var text bytes.Buffer
		if err = s.exec(ctx, control, pod.Command{Args: []string{"/dbg", "edges", "-o", "json"}, Out: &text, Err: p.ErrOut}); err != nil {
			if len(controls) > 1 {
				fmt.Fprintf(p.ErrOut, "Without the edges of pod %s: %v\n", control.Pod, err)
			}
			continue
		}
		var answer struct {
			Edges []map[string]any `json:"edges"`
		}
		if err := json.Unmarshal(text.Bytes(), &answer); err != nil {
			return nil, fmt.Errorf("reading the edges of pod %s: %w", control.Pod, err)
		}
		for _, e := range answer.Edges {
			e["control"] = control.Pod
			list = append(list, e)
		}
		answered = true
	}
	if !answered {
		return nil, err
	}
	return list, nil
}

func (p *plugin) printEdges(list []map[string]any) error {
	if len(list) == 0 {
		fmt.Fprintln(p.ErrOut, "No edge is connected.")
		return nil
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	var edges []edge
	if err := json.Unmarshal(text, &edges); err != nil {
		return fmt.Errorf("reading the edges: %w", err)
	}
	rows := table{{"NAME", "GROUP", "STATE", "FINDINGS", "NGINX", "RELEASE", "CONNECTED SINCE", "CONTROL"}}
	for _, e := range edges {
		rows = append(rows, []string{
			e.Name, orNone(e.Group), e.State, strconv.Itoa(len(e.Findings) + e.MoreFindings), orNone(e.NGINX), orNone(e.Release),
			e.Since.UTC().Format(time.RFC3339), e.Control,
		})
	}
	return rows.write(p.Out)
}
