import { readFileSync } from 'node:fs'
import { bodySchemaOf, type Entity, kinds, postureCheckVariants, transitRouter } from '@overlay/model'
import { expect, test } from 'vitest'
import { management } from '../../gateway/src/api/operations.js'
import { columnsOf, type Letters, lettersOf } from '../fields.js'

const published = JSON.parse(
  readFileSync(new URL('../captures/fields.json', import.meta.url), 'utf8'),
) as Readonly<Record<string, Letters>>

/** Where we are not what the documents say, with the reason. */
const decided: Readonly<Record<string, Letters>> = {
  // read-only after create, as the documents say themselves in words
  services: { encryptionRequired: 'R--' },
  // every kind has tags, this one too
  enrollments: { tags: 'O--' },
  // a claim is checked as a whole, once it is known whether there is one: a patch may name a part of it
  cas: Object.fromEntries(
    ['index', 'location', 'matcher', 'matcherCriteria', 'parser', 'parserCriteria'].map((member) => [
      `externalIdClaim.${member}`,
      'OOO',
    ]),
  ),
}

/** The shape follows the type, so that nothing can be read without it; a patch may change one leaf. */
const decidedOf = (name: string): Letters => ({
  ...decided[name],
  ...(name.startsWith('posture-checks ') && { typeId: 'RRR' }),
  ...(name === 'posture-checks PROCESS' && { 'process.osType': 'RRO', 'process.path': 'RRO' }),
})

const definitions: ReadonlyMap<string, Entity> = new Map([
  ...kinds,
  ['routers', transitRouter],
  ...[...postureCheckVariants].map(([typeId, variant]) => [`posture-checks ${typeId}`, variant] as const),
])
const writes = ['create', 'replace', 'patch'] as const

/** What the bodies that follow from a definition take, of the writes that the documents have. */
function lettersFor(entity: Entity, said: Letters): Letters {
  const published = Object.values(said)
  const bodies = writes.map((write, at) =>
    published.some((letters) => letters[at] !== '-') ? lettersOf(bodySchemaOf(entity, write)) : undefined,
  )
  return columnsOf(bodies)
}

/** Where the shape follows a type, each type is compared, in place of what they share. */
const compared = Object.entries(published).filter(
  ([name]) => !Object.keys(published).some((other) => other.startsWith(`${name} `)),
)

test.each(compared)('%s take on create, replace and patch what the documents say', (name, said) => {
  const entity = definitions.get(name)
  if (entity) expect(lettersFor(entity, said)).toEqual({ ...said, ...decidedOf(name) })
  else expect(Object.keys(management)).not.toContain(`POST /${name.split(' ')[0]}`)
})

test('every kind that is made over the API is in the documents', () => {
  const made = [...kinds.keys()].filter((kind) => `POST /${kind}` in management)
  expect(Object.keys(published)).toEqual(expect.arrayContaining(made))
})
