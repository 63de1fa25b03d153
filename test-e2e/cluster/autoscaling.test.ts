import { expect, test } from 'vitest'
import { type AutoscalerSpec, openScaling, type Values } from './autoscaling.js'

const spec: AutoscalerSpec = {
  scaleTargetRef: { kind: 'StatefulSet', name: 'sessions' },
  minReplicas: 2,
  maxReplicas: 6,
  metrics: [
    { resource: { name: 'cpu', target: { type: 'AverageValue', averageValue: '700m' } } },
    { pods: { metric: { name: 'routers' }, target: { type: 'AverageValue', averageValue: '1000' } } },
  ],
  behavior: {
    scaleDown: { stabilizationWindowSeconds: 300, policies: [{ type: 'Pods', value: 1, periodSeconds: 60 }] },
  },
}
const idle: Values = [0, 0, 0]

test.each<readonly [string, number, Values, Values, number]>([
  ['the metric that asks for most counts', 3, [0.1, 0.1, 0.1], [1500, 1500, 1500], 5],
  ['processor time alone makes more', 3, [0.9, 0.9, 0.9], [1, 1, 1], 4],
  ['within a tenth of the target, nothing changes', 3, [0.76, 0.77, 0.77], [1099, 1099, 1099], 3],
  ['a pod without a value counts as idle above the target', 3, idle, [2000, 2000, undefined], 4],
  ['and never turns more into less', 3, idle, [1200, 1200, undefined], 3],
  [
    'without one of the metrics, the other makes more',
    3,
    [0.9, 0.9, 0.9],
    [undefined, undefined, undefined],
    4,
  ],
  ['there are never more than the most', 3, idle, [9000, 9000, 9000], 6],
  ['there are never less than the least', 1, [undefined], [undefined], 2],
])('%s', (_rule, current, cpu, routers, replicas) => {
  expect(openScaling(spec).next(current, [cpu, routers], 0)).toBe(replicas)
})

test('replicas go one a minute, when none was needed for five minutes', () => {
  const scaling = openScaling(spec)
  const at = (seconds: number, current: number): number =>
    scaling.next(current, [idle.slice(0, current), idle.slice(0, current)], seconds)
  expect(scaling.next(3, [idle, [1500, 1500, 1500]], 0)).toBe(5)
  expect([at(299, 5), at(300, 5), at(359, 4), at(360, 4), at(420, 3), at(480, 2)]).toEqual([5, 4, 4, 3, 2, 2])
})

test('without one of the metrics, no replica goes', () => {
  const scaling = openScaling(spec)
  const without = [idle, [undefined, undefined, undefined]]
  expect([0, 300, 600].map((seconds) => scaling.next(3, without, seconds))).toEqual([3, 3, 3])
})
