import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { collectNodeMetrics } from './node-metrics.js'

test('the lag of the event loop has the usual names, and is a number before the first measurement', async () => {
  const registry = new Registry()
  collectNodeMetrics(registry)
  const samples = (await registry.metrics()).match(/^nodejs_eventloop_lag_\w+ .*/gm) ?? []
  const figures = samples.map((sample) => Number(sample.split(' ')[1]))
  expect(samples.map((sample) => sample.split('_').slice(3).join('_').split(' ')[0]).sort()).toEqual(
    ['max', 'mean', 'min', 'p50', 'p90', 'p99', 'stddev']
      .map((what) => `${what}_seconds`)
      .concat('seconds')
      .sort(),
  )
  expect(figures.every((seconds) => seconds >= 0 && seconds < 600)).toBe(true)
})
