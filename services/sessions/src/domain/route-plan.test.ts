import { expect, test } from 'vitest'
import { type Forward, routePlan } from './route-plan.js'

const forward = ({ from, to, toType }: Forward): string => `${from} > ${to} ${toType}`

const plan = (routerIds: readonly string[], linkIds: readonly string[]) =>
  routePlan({ routerIds, linkIds, ingressAddress: 'in', egressAddress: 'out' })

test.each([
  [['r1'], [], [['in > out end', 'out > in start']]],
  [
    ['r1', 'r2'],
    ['l1'],
    [
      ['in > l1 link', 'l1 > in start'],
      ['l1 > out end', 'out > l1 link'],
    ],
  ],
  [
    ['r1', 'r2', 'r3'],
    ['l1', 'l2'],
    [
      ['in > l1 link', 'l1 > in start'],
      ['l1 > l2 link', 'l2 > l1 link'],
      ['l2 > out end', 'out > l2 link'],
    ],
  ],
])('routers %j with links %j forward in both directions', (routerIds, linkIds, forwards) => {
  const routes = plan(routerIds, linkIds)
  expect(routes.map((route) => route.forwards.map(forward))).toEqual(forwards)
  expect(routes.map(({ routerId }) => routerId)).toEqual(routerIds)
  expect(routes.map(({ isLast }) => isLast)).toEqual(routerIds.map((_, i) => i === routerIds.length - 1))
})

test('a path without a link between two routers has no plan', () => {
  expect(() => plan(['r1', 'r2'], [])).toThrow('2 routers and 0 links')
})
