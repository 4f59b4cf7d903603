package main

import "github.com/hibiken/asynq"

type uriBatch struct {
	URIs []string `json:"uris"`
}

// uriView is where asynq would connect to; Refused when it would not.
type uriView struct {
	Refused  bool     `json:"refused"`
	Network  string   `json:"network"`
	Addr     string   `json:"addr"`
	DB       int      `json:"db"`
	Password string   `json:"password"`
	TLS      bool     `json:"tls"`
	Master   string   `json:"master"`
	Hosts    []string `json:"hosts"`
}

func addURIOperations(ops operations) {
	ops["redisURIs"] = operation(func(a uriBatch) ([]uriView, error) {
		views := make([]uriView, len(a.URIs))
		for i, uri := range a.URIs {
			views[i] = viewURI(uri)
		}
		return views, nil
	})
}

func viewURI(uri string) uriView {
	opt, err := asynq.ParseRedisURI(uri)
	if err != nil {
		return uriView{Refused: true}
	}
	switch opt := opt.(type) {
	case asynq.RedisClientOpt:
		return uriView{Network: opt.Network, Addr: opt.Addr, DB: opt.DB, Password: opt.Password, TLS: opt.TLSConfig != nil}
	case asynq.RedisFailoverClientOpt:
		return uriView{Master: opt.MasterName, Hosts: opt.SentinelAddrs, Password: opt.SentinelPassword}
	}
	return uriView{Refused: true}
}
