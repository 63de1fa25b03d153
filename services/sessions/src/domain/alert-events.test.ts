import { expect, test } from 'vitest'
import { MOST_ALERTS } from '../limits.js'
import { alertEvents, type ReportedAlert } from './alert-events.js'

const alert = (members: Partial<ReportedAlert> = {}): ReportedAlert => ({
  ...{ sourceType: 'self', sourceId: '', timestamp: 1000n, severity: 'error' },
  ...{ message: 'error starting proxy listener', details: ['unable to bind eth0'] },
  relatedEntities: new Map([
    ['self', 'ert'],
    ['service', 'wiki'],
  ]),
  ...members,
})

test('a router that names itself is the source, and the router and identity that the alert is about', () => {
  expect(alertEvents([alert()], 'r1')).toEqual([
    {
      ...{ namespace: 'alert', timestamp: '1970-01-01T00:00:01.000Z' },
      ...{ alert_source_type: 'router', alert_source_id: 'r1', severity: 'error' },
      ...{ message: 'error starting proxy listener', details: ['unable to bind eth0'] },
      related_entities: { service: 'wiki', router: 'r1', identity: 'r1' },
    },
  ])
  const relatedEntities = new Map([['self', 'self']])
  const [other] = alertEvents([alert({ sourceType: 'sdk', sourceId: 's1', relatedEntities })], 'r1')
  expect(other).toMatchObject({ alert_source_type: 'sdk', alert_source_id: 's1' })
  expect(other?.related_entities).toEqual({ router: 'r1' })
})

test.each([
  ['a text that cannot be shown', { message: '<script>' }],
  ['an impossible time', { timestamp: 2n ** 62n }],
])('an alert with %s makes no event', (_, members) => {
  expect(alertEvents([alert(members)], 'r1')).toEqual([])
})

test('the events of one message are bounded', () => {
  expect(
    alertEvents(
      Array.from({ length: 1000 }, () => alert()),
      'r1',
    ),
  ).toHaveLength(MOST_ALERTS)
})
