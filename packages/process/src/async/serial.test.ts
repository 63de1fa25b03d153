import { expect, test } from 'vitest'
import { openSerial } from './serial.js'

test('tasks run one after the other, also after one that fails', async () => {
  const serially = openSerial()
  const steps: string[] = []
  const task = (name: string) => async () => {
    steps.push(`${name} begins`)
    await Promise.resolve()
    steps.push(`${name} ends`)
    if (name === 'bad') throw new Error(name)
    return name
  }
  const results = await Promise.allSettled(['a', 'bad', 'b'].map((name) => serially(task(name))))
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(steps).toEqual(['a begins', 'a ends', 'bad begins', 'bad ends', 'b begins', 'b ends'])
})
