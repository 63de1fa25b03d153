import { Fault, ownContext } from '@overlay/rpc'
import pino from 'pino'
import { expect, test } from 'vitest'
import { newEnrollment, openEnrollmentRequests } from './enrollments.js'

const context = ownContext(new AbortController().signal)
const changeLog = { db: { schema: 'identity' }, log: pino({ level: 'silent' }) }
const oneTime = newEnrollment({ method: 'ott', identityId: 'i1' })
const written = { id: 'i1', position: { timeline: 't', number: 1 } }

function requests() {
  let nowMs = 0
  const checked: string[] = []
  const answers = { check: true, grant: true }
  const answer = async (isGood: boolean) => {
    if (!isGood) throw new Fault('UNAVAILABLE')
    return {}
  }
  const pki = {
    checkEnrollment: (wish: { readonly method: string }) => {
      checked.push(wish.method)
      return answer(answers.check)
    },
    grantEnrollment: () => answer(answers.grant),
  }
  return {
    ...openEnrollmentRequests(changeLog, pki, () => nowMs),
    checked,
    answers,
    advance(ms: number) {
      nowMs += ms
    },
  }
}

test('pki is asked before a one-time token, unless it has answered within the last second', async () => {
  const { check, checked, advance } = requests()
  await check(oneTime, context)
  advance(999)
  await check(oneTime, context)
  expect(checked).toEqual(['ott'])
  advance(1)
  await check(oneTime, context)
  expect(checked).toEqual(['ott', 'ott'])
})

test('enrollments that pki has to look up are always checked', async () => {
  const { check, checked } = requests()
  await check(oneTime, context)
  for (const method of ['updb', 'ottca']) await check(newEnrollment({ method }), context)
  expect(checked).toEqual(['ott', 'updb', 'ottca'])
})

test('after pki has failed, the next enrollment is checked', async () => {
  const { check, grant, checked, answers } = requests()
  answers.check = false
  await expect(check(oneTime, context)).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  answers.check = true
  await check(oneTime, context)
  answers.grant = false
  expect(await grant(written, oneTime, context)).toBe(written)
  await check(oneTime, context)
  expect(checked).toEqual(['ott', 'ott', 'ott'])
})
