import { expect, test } from 'vitest'
import { featuresOf, NO_FEATURES } from './router-features.js'

const ungrouped = (version: string) => featuresOf({ version }, false)

test('a router with a grouped hello has all features, whatever its version', () => {
  const all = { hasDataModel: true, needsSignedSessions: true, isGrouped: true }
  expect(featuresOf({ version: 'v0.0.0' }, true)).toEqual(all)
  expect(featuresOf({ version: '' }, true)).toEqual(all)
})

test.each(['v1.1.13', 'v1.2.2', 'v0.34.2'])('%s has no features', (version) => {
  expect(ungrouped(version)).toEqual(NO_FEATURES)
})

test.each(['v1.3.0', 'v1.6.20', 'v1.6.0-pre1'])('%s has the data model', (version) => {
  expect(ungrouped(version)).toEqual({ ...NO_FEATURES, hasDataModel: true })
})

test.each(['v1.7.0', 'v1.7.2', 'v1.10.0', 'v1.8.0-pre5', 'v2.0.3'])(
  '%s needs signed sessions, too',
  (version) => {
    expect(ungrouped(version)).toEqual({ ...NO_FEATURES, hasDataModel: true, needsSignedSessions: true })
  },
)

test.each([
  '',
  'v0.0.0',
  '1.7.2',
  'v1.7',
  'v1.7.2 ',
  'v1.7.2|',
  'v1.7.2\n',
  'v99999.9.9',
  'xv1.7.2',
  'v1.-7.2',
])('the text %j names no release: no features', (version) => expect(ungrouped(version)).toEqual(NO_FEATURES))
