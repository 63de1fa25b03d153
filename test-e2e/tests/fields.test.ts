import { readFileSync } from 'node:fs'
import { bodySchemaOf, type Entity, kinds, postureCheckVariants, transitRouter } from '@overlay/model'
import { expect, test } from 'vitest'
import { management } from '../../gateway/src/api/operations.js'
import { columnsOf, type Letters, lettersOf } from '../fields.js'
import { added } from '../published.js'

const published = JSON.parse(
  readFileSync(new URL('../captures/fields.json', import.meta.url), 'utf8'),
) as Readonly<Record<string, Letters>>

/** Deviations from the documents, with reasons. */
const deviations: Readonly<Record<string, Letters>> = {
  // read-only after create, as the text of the documents says
  services: { encryptionRequired: 'R--' },
  // every kind has tags
  enrollments: { tags: 'O--' },
  // a claim is checked as a whole after the patch, which may name a part of it
  cas: Object.fromEntries(
    ['index', 'location', 'matcher', 'matcherCriteria', 'parser', 'parserCriteria'].map((member) => [
      `externalIdClaim.${member}`,
      'OOO',
    ]),
  ),
}

/** The type selects the shape, so every body requires it. A patch may change single members. */
const deviationsOf = (name: string): Letters => ({
  ...deviations[name],
  ...(name.startsWith('posture-checks ') && { typeId: 'RRR' }),
  ...(name === 'posture-checks PROCESS' && { 'process.osType': 'RRO', 'process.path': 'RRO' }),
})

const definitions: ReadonlyMap<string, Entity> = new Map([
  ...kinds,
  ['routers', transitRouter],
  ...[...postureCheckVariants].map(([typeId, variant]) => [`posture-checks ${typeId}`, variant] as const),
])
const writes = ['create', 'replace', 'patch'] as const

/** The letters of the bodies of a definition, for the operations that the documents have. */
function lettersFor(entity: Entity, letters: Letters): Letters {
  const published = Object.values(letters)
  const bodies = writes.map((write, at) =>
    published.some((value) => value[at] !== '-') ? lettersOf(bodySchemaOf(entity, write)) : undefined,
  )
  return columnsOf(bodies)
}

/** Of kinds with variants, each variant is compared in place of the common definition. */
const compared = Object.entries(published).filter(
  ([name]) => !Object.keys(published).some((other) => other.startsWith(`${name} `)),
)

test.each(compared)('%s have the members of the documents on create, replace and patch', (name, letters) => {
  const entity = definitions.get(name)
  if (entity) expect(lettersFor(entity, letters)).toEqual({ ...letters, ...deviationsOf(name) })
  else expect(Object.keys(management)).not.toContain(`POST /${name.split(' ')[0]}`)
})

test('every kind that the API creates is in the documents', () => {
  const isAdded = (kind: string) => added.some((o) => o.method === 'POST' && o.path === `/${kind}`)
  const creatable = [...kinds.keys()].filter((kind) => `POST /${kind}` in management && !isAdded(kind))
  expect(Object.keys(published)).toEqual(expect.arrayContaining(creatable))
})
