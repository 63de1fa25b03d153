import { expect, test } from 'vitest'
import { mergeMetrics } from './prometheus-text.js'

const metrics = (count: number) => `# HELP call_seconds Calls
# TYPE call_seconds histogram
call_seconds_bucket{le="+Inf",method="a} b"} ${count}
call_seconds_sum{method="a} b"} 0.5
call_seconds_count{method="a} b"} ${count}

# HELP open Connections
# TYPE open gauge
open ${count}
`

test('each metric is described once, and each sample names its process', () => {
  const up = '# HELP up Answers\n# TYPE up gauge\nup{process="b"} 1\n'
  const texts = [{ process: 'a', text: metrics(1) }, { process: 'b', text: metrics(2) }, { text: up }]
  expect(mergeMetrics(texts)).toBe(`# HELP call_seconds Calls
# TYPE call_seconds histogram
call_seconds_bucket{process="a",le="+Inf",method="a} b"} 1
call_seconds_sum{process="a",method="a} b"} 0.5
call_seconds_count{process="a",method="a} b"} 1
call_seconds_bucket{process="b",le="+Inf",method="a} b"} 2
call_seconds_sum{process="b",method="a} b"} 0.5
call_seconds_count{process="b",method="a} b"} 2
# HELP open Connections
# TYPE open gauge
open{process="a"} 1
open{process="b"} 2
# HELP up Answers
# TYPE up gauge
up{process="b"} 1
`)
})
