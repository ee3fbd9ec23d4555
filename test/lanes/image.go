package lanes

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moby/moby/client"
)

const (
	// pullSilence is how long a pull may show no progress.
	pullSilence = 20 * time.Second
	// pullTotal bounds a pull that progresses.
	pullTotal = 5 * time.Minute
)

var errPullSilent = fmt.Errorf("no progress for %v", pullSilence)

// pulled makes sure that the engine has an image, from its registry.
func pulled(cli client.APIClient, image string) error {
	present := func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, err := cli.ImageInspect(ctx, image)
		return err == nil
	}
	return attempt("pull "+image+" by "+cli.DaemonHost(), present, func() error {
		if err := pull(cli, image); err != nil {
			return fmt.Errorf("pull %s: %w", image, err)
		}
		return nil
	})
}

func pull(cli client.APIClient, image string) error {
	total, cancelTotal := context.WithTimeout(context.Background(), pullTotal)
	defer cancelTotal()
	ctx, cancel := context.WithCancelCause(total)
	silence := time.AfterFunc(pullSilence, func() { cancel(errPullSilent) })
	defer silence.Stop()
	cause := func(err error) error {
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		return err
	}

	response, err := cli.ImagePull(ctx, image, client.ImagePullOptions{})
	if err != nil {
		return cause(err)
	}
	defer func() { _ = response.Close() }()
	for message, err := range response.JSONMessages(ctx) {
		silence.Reset(pullSilence)
		if err != nil {
			return cause(err)
		}
		if message.Error != nil {
			return message.Error
		}
	}
	return cause(nil)
}

// made is the image of a Debian release's redis-server, made on this machine.
func made(cli client.APIClient, suite string) (string, error) {
	var tag string
	err := attempt("make "+suite+" for "+cli.DaemonHost(),
		func() bool { return false }, // the script itself knows
		func() (err error) {
			tag, err = runScript(10*time.Minute, "redis-image.sh", suite)
			return err
		})
	return tag, err
}
