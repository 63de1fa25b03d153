import { expect, test } from 'vitest'
import { type RouterState, routerChanges } from './router-state.js'

const router = (id: string) => ({
  id,
  fingerprint: 'f',
  isVerified: true,
  isOnline: true,
  disabled: false,
})
const terminator = (id: string, routerId: string) => ({
  id,
  serviceId: 's1',
  routerId,
  binding: 'edge',
  precedence: 'default',
  cost: 0,
})
const link = (id: string, source: string, dest: string) => ({
  id,
  sourceRouter: { id: source },
  destRouter: { id: dest },
  state: 'Connected',
  down: false,
})
const before: RouterState = {
  routers: [router('r1'), router('r2')],
  terminators: [terminator('t1', 'r1')],
  links: [link('l1', 'r1', 'r2')],
  circuits: [],
}

test('new ids and other routers are no change', () => {
  const now = {
    routers: [...before.routers, { ...router('r3'), isOnline: false }],
    terminators: [terminator('t9', 'r1')],
    links: [link('l9', 'r2', 'r1'), link('l8', 'evil', 'r2')],
    circuits: [{ id: 'c1', path: { nodes: [{ id: 'r1' }, { id: 'r2' }] } }],
  }
  expect(routerChanges(before, now, 'evil')).toEqual([])
})

test('what others have lost, and what the hostile router has, are changes', () => {
  const now = {
    routers: [router('r1'), { ...router('r2'), isOnline: false }],
    terminators: [{ ...terminator('t1', 'r1'), precedence: 'failed' }, terminator('t2', 'evil')],
    links: [],
    circuits: [{ id: 'c1', path: { nodes: [{ id: 'r1' }, { id: 'evil' }] } }],
  }
  expect(routerChanges(before, now, 'evil')).toEqual([
    expect.stringContaining('online false'),
    expect.stringContaining('failed'),
    expect.stringContaining('link between r1 and r2'),
    'terminator of s1 at the hostile router',
    'circuit c1 over the hostile router',
  ])
})
