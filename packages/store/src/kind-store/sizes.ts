import { type Entity, refusalOfTags, scalarsOf, storedBytes, type Tags } from '@overlay/model'
import { invalid } from '@overlay/rpc'
import { MOST_ROW_BYTES } from '../limits.js'

/** The tags of a body. */
export function tagsOf(value: unknown): Tags {
  const tags = scalarsOf(value)
  const refusal = refusalOfTags(tags)
  if (refusal) throw invalid('tags', refusal, '')
  return tags
}

/** Refuses a row that is too large, naming its largest member, unless it becomes smaller. */
export function refuseLarge(entity: Entity, values: object, before: object = {}): void {
  const sizes = sizesOf(entity, values)
  const total = sumOf(sizes)
  if (total <= MOST_ROW_BYTES || total <= sumOf(sizesOf(entity, before))) return
  const [[largest] = ['']] = [...sizes].sort(([, a], [, b]) => b - a)
  throw invalid(largest, `${largest} is too large: all members may take at most ${MOST_ROW_BYTES} bytes`, '')
}

const sizesOf = ({ fields }: Entity, values: object): ReadonlyMap<string, number> => {
  const members = values as Readonly<Record<string, unknown>>
  return new Map(Object.keys(fields).map((name) => [name, storedBytes(members[name])]))
}

const sumOf = (sizes: ReadonlyMap<string, number>): number =>
  [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0)
