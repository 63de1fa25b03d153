import { expect, test } from 'vitest'
import { evaluatesPosture, featuresOf, NO_FEATURES } from './router-features.js'

const ungrouped = (version: string) => featuresOf({ version }, false)

test.each([
  ['v0.0.0', false],
  ['', false],
  ['v2.0.0', false],
  ['v2.0.1', true],
  ['v2.0.3', true],
  ['v2.1.0-pre2', true],
  ['v3.0.0', true],
])(
  'a router of %j with a grouped hello has all features; it compares its model: %s',
  (version, comparesModel) => {
    const all = { hasDataModel: true, verifiesTokens: true, needsSignedSessions: true, isGrouped: true }
    expect(featuresOf({ version }, true)).toEqual({ ...all, comparesModel })
  },
)

test.each(['v1.1.13', 'v1.2.2', 'v0.34.2'])('%s has no features', (version) => {
  expect(ungrouped(version)).toEqual(NO_FEATURES)
})

test.each(['v1.3.0', 'v1.6.20', 'v1.6.0-pre1'])('%s has the data model', (version) => {
  expect(ungrouped(version)).toEqual({ ...NO_FEATURES, hasDataModel: true, verifiesTokens: true })
})

test.each(['v1.7.0', 'v1.7.2', 'v1.10.0', 'v1.8.0-pre5', 'v2.0.3'])(
  '%s needs signed sessions, too',
  (version) => {
    expect(ungrouped(version)).toEqual({
      ...NO_FEATURES,
      hasDataModel: true,
      verifiesTokens: true,
      needsSignedSessions: true,
    })
  },
)

test('a router that is built without a release gets what any line needs, and is trusted with nothing', () => {
  const features = { ...NO_FEATURES, hasDataModel: true, needsSignedSessions: true }
  expect(ungrouped('v0.0.0')).toEqual(features)
  expect(evaluatesPosture(features)).toBe(false)
})

test.each(['', '1.7.2', 'v1.7', 'v1.7.2 ', 'v1.7.2|', 'v1.7.2\n', 'v99999.9.9', 'xv1.7.2', 'v1.-7.2'])(
  'the text %j names no release: no features',
  (version) => expect(ungrouped(version)).toEqual(NO_FEATURES),
)
