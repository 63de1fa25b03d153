import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { cancellationOf, openCancellation } from './cancellation.js'
import { contextFromMessage } from './context-codec.js'
import { Fault } from './fault.js'
import { CallContext } from './gen/overlay/stream/v1/stream.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const contextOf = (limitMs: number) => {
  const cancellation = openCancellation(limitMs)
  return { cancellation, context: contextFromMessage(CallContext.create(), limitMs, cancellation) }
}

test('a call that reads no signal and adds no listener has no timer', () => {
  const { cancellation, context } = contextOf(1000)
  expect(cancellationOf(context).isCancelled()).toBe(false)
  expect(vi.getTimerCount()).toBe(0)
  cancellation.forget()
})

test('a listener and the signal learn the same end, at the limit', () => {
  const { context } = contextOf(1000)
  const listener = vi.fn()
  cancellationOf(context).listen(listener)
  vi.advanceTimersByTime(500)
  expect(listener).not.toHaveBeenCalled()
  const { signal } = context
  vi.advanceTimersByTime(520)
  expect(listener).toHaveBeenCalledOnce()
  expect(signal.reason).toMatchObject({ code: 'TIMEOUT' })
  expect(cancellationOf(context).reason()).toBe(signal.reason)
})

test('a signal that is first read after the end is aborted, and a late listener is called at once', () => {
  const { cancellation, context } = contextOf(1000)
  cancellation.cancel(new Fault('UNAVAILABLE'))
  expect(context.signal.reason).toMatchObject({ code: 'UNAVAILABLE' })
  const listener = vi.fn()
  cancellationOf(context).listen(listener)
  expect(listener).toHaveBeenCalledOnce()
})

test('a removed listener is not called', () => {
  const { cancellation, context } = contextOf(1000)
  const listener = vi.fn()
  cancellationOf(context).listen(listener)()
  cancellation.cancel(new Fault('TIMEOUT'))
  expect(listener).not.toHaveBeenCalled()
})

test('a copy of a context with a signal of its own ends with that signal', () => {
  const { cancellation, context } = contextOf(1000)
  const abort = new AbortController()
  const copy = { ...context, signal: abort.signal }
  const listener = vi.fn()
  cancellationOf(copy).listen(listener)
  cancellation.cancel(new Fault('TIMEOUT'))
  expect(listener).not.toHaveBeenCalled()
  abort.abort()
  expect(listener).toHaveBeenCalledOnce()
  expect(getEventListeners(abort.signal, 'abort')).toEqual([])
})

test('a call that was answered is no longer observed', () => {
  const { cancellation, context } = contextOf(1000)
  const { signal } = context
  cancellation.forget()
  vi.advanceTimersByTime(2000)
  expect(signal.aborted).toBe(false)
  expect(vi.getTimerCount()).toBe(0)
})

test('all contexts compute their signal by one function', () => {
  const getterOf = (context: object) => Object.getOwnPropertyDescriptor(context, 'signal')?.get
  const [one, other] = [contextOf(1000).context, contextOf(1000).context]
  expect(getterOf(one)).toBeDefined()
  expect(getterOf(one)).toBe(getterOf(other))
  expect(one.signal).not.toBe(other.signal)
})
