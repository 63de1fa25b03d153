import { expect, test } from 'vitest'
import { disposeAll, openAll } from './dispose.js'

/** Parts that record their end, and may fail with it. */
function recorded() {
  const ended: string[] = []
  const end = (name: string, failure?: Error): void => {
    ended.push(name)
    if (failure) throw failure
  }
  return {
    ended,
    later: (name: string, failure?: Error): AsyncDisposable => ({
      [Symbol.asyncDispose]: async () => end(name, failure),
    }),
    atOnce: (name: string, failure?: Error): Disposable => ({ [Symbol.dispose]: () => end(name, failure) }),
    step: (name: string) => () => end(name),
  }
}

test('all parts are disposed in their order, also behind one that fails', async () => {
  const { ended, later, atOnce, step } = recorded()
  const failure = new Error('not closed')
  const disposing = disposeAll(later('a', failure), undefined, atOnce('b'), step('c'), later('d'))
  await expect(disposing).rejects.toBe(failure)
  expect(ended).toEqual(['a', 'b', 'c', 'd'])
})

test('several failures are reported together', async () => {
  const { later, atOnce } = recorded()
  const failures = [new Error('one'), new Error('two')]
  await expect(disposeAll(later('a', failures[0]), atOnce('b', failures[1]))).rejects.toMatchObject({
    errors: failures,
  })
})

test('a failed opening disposes what was opened before, the last part first', async () => {
  const { ended, later, atOnce } = recorded()
  const failure = new Error('not opened')
  const opening = openAll(async (own) => {
    own(later('a'))
    own(atOnce('b', new Error('not closed')))
    own(undefined)
    own(later('c'))
    throw failure
  })
  await expect(opening).rejects.toBe(failure)
  expect(ended).toEqual(['c', 'b', 'a'])
})

test('what is opened stays open', async () => {
  const { ended, later } = recorded()
  expect(await openAll(async (own) => own(later('a')) && 'opened')).toBe('opened')
  expect(ended).toEqual([])
})
