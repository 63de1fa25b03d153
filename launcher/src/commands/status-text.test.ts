import { expect, test } from 'vitest'
import { keyConcernsIn, type Status } from './read-status.js'
import { statusText } from './status-text.js'

const now = new Date('2026-01-12T10:00:00.000Z')
const start = {
  version: '0.1.0',
  revision: '0123456789ab',
  launcher: 7,
  startedAt: '2026-01-12T07:30:00.000Z',
  address: 'localhost:1280',
  ctrlAddress: 'localhost:6262',
  metricsAddress: '127.0.0.1:9962',
  database: 'run by the launcher',
  snapshots: '/home/snapshots',
}
const stopped: Status = { state: 'stopped', home: '/home', start, processes: [], certificates: [] }

test('a running product shows what is not ready', () => {
  const text = statusText(
    {
      ...stopped,
      state: 'unhealthy',
      processes: [
        { name: 'gateway', pid: 8, startedAt: start.startedAt, restarts: 0, ready: true, problems: [] },
        { name: 'policy', restarts: 3, ready: false, problems: ['database does not answer'] },
      ],
      database: 'does not answer',
      bus: 'ok',
      routersConnected: 2,
      certificates: [
        { role: 'root', expiresAt: '2026-01-22T10:00:00.000Z' },
        { role: 'server', expiresAt: '2026-01-12T09:00:00.000Z' },
      ],
      lastBackup: { path: '/backup/1', at: '2026-01-09T10:00:00.000Z' },
    },
    now,
  )
  expect(text).toBe(`overlay 0.1.0 (0123456789ab) is running, but not healthy

  home           /home
  address        https://localhost:1280
  status page    https://localhost:1280/status
  routers        at localhost:6262, 2 connected
  launcher       process 7, up 2 h
  metrics        http://127.0.0.1:9962/metrics
  database       does not answer, run by the launcher
  bus            ok
  certificate    root: 10 days left (2026-01-22)
  certificate    server: EXPIRED (2026-01-12)
  last backup    3 d ago: /backup/1
  last snapshot  none

  process  pid  up   restarts  state
  gateway  8    2 h  0         ready
  policy   -    -    3         NOT READY: database does not answer`)
})

test('a stopped product shows how and when it ended', () => {
  expect(statusText(stopped, now)).toContain('stopped        without an orderly stop; started 2 h ago')
  const orderly = { ...start, stoppedAt: '2026-01-12T09:59:00.000Z' }
  expect(statusText({ ...stopped, start: orderly }, now)).toContain('stopped        1 min ago')
})

test('a key that needs the operator is shown, once for all replicas', () => {
  const days = (count: number): number => (now.getTime() + count * 86_400_000) / 1000
  const metrics = `
overlay_certificate_expiry_timestamp_seconds{role="signing",state="active"} ${days(29)}
overlay_certificate_expiry_timestamp_seconds{role="signing",state="active"} ${days(29)}
overlay_certificate_expiry_timestamp_seconds{role="signing",state="retired"} ${days(2)}
overlay_certificate_expiry_timestamp_seconds{role="root",state="active"} ${days(300)}
overlay_key_renewal_timestamp_seconds{role="server"} ${days(-3)}
overlay_key_renewal_timestamp_seconds{role="token"} ${days(-1)}
overlay_provided_key_refused{role="token"} 1
overlay_provided_key_refused{role="signing"} 0`
  const keyConcerns = keyConcernsIn(metrics, now.getTime())
  expect(keyConcerns).toEqual([
    { role: 'signing', problem: 'expires within 30 days' },
    { role: 'server', problem: 'replacement overdue' },
    { role: 'token', problem: 'files of your own key refused' },
  ])
  expect(statusText({ ...stopped, keyConcerns }, now)).toContain(
    'ATTENTION      server key: replacement overdue: npm run keys',
  )
})
