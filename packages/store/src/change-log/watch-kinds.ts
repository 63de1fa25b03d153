import type { Position } from '@overlay/rpc'
import { openProjection, type Projection } from './projection.js'
import type { Source } from './source.js'

/**
 * Reports that rows of these kinds may have changed, without their content. `changed` gets the position that a read must
 * have reached to see them.
 */
export function watchKinds(
  source: Source,
  kinds: readonly string[],
  changed: (upto: Position) => void,
  options: Parameters<typeof openProjection>[2],
): Promise<Projection> {
  const memory = {
    name: `changes of ${kinds.join(' and ')}`,
    kinds,
    load: () => ({ add: () => undefined, end: changed }),
    apply(changes: readonly unknown[], upto: Position): void {
      if (changes.length > 0) changed(upto)
    },
  }
  return openProjection(source, memory, options)
}
