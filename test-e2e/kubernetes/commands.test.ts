import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { type KubernetesObject, render, unavailableAfter } from './kustomize.js'
import { workloadsIn } from './workloads.js'

const root = join(import.meta.dirname, '../..')

/** Commands with `kubectl` in the documents of operators: in blocks, and in text between backticks. */
async function readCommands(): Promise<readonly string[]> {
  const names = (await readdir(join(root, 'docs'))).filter((name) => name.endsWith('.md'))
  const texts = await Promise.all(names.map((name) => readFile(join(root, 'docs', name), 'utf8')))
  return texts.flatMap((text) => {
    const blocks = [...text.matchAll(/^ *```sh\n(.*?)^ *```/gms)].flatMap(([, block = '']) =>
      block.split('\n'),
    )
    const inline = [...text.matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code)
    return [...blocks, ...inline].flatMap((code) => code.match(/\bkubectl .*/)?.[0] ?? [])
  })
}

let objects: readonly KubernetesObject[] = []
let commands: readonly string[] = []
let unavailable: unknown
beforeAll(async () => {
  commands = await readCommands()
  unavailable = await unavailableAfter(async () => {
    objects = (await render('overlays/production')).objects
  })
}, 600_000)

const kinds: Readonly<Record<string, string>> = {
  deploy: 'Deployment',
  statefulset: 'StatefulSet',
  job: 'Job',
  hpa: 'HorizontalPodAutoscaler',
}

interface Target {
  readonly kind: string
  readonly name: string
}

/** The objects that a command names, as `deploy/pki`, or `job -n overlay migrate-0-2-0`. */
const targetsOf = (command: string): readonly Target[] =>
  [
    ...command.matchAll(/(?<!-k) ([a-z]+)\/([-\w]+)(?![/\w.])/g),
    ...command.matchAll(/ (deploy|statefulset|job|hpa) (?:-n overlay )?(?!-)([-\w]+)/g),
  ].map(([, kind = '', name = '']) => ({ kind, name }))

/** What a command names and the manifests and programs do not have. */
function missingOf(command: string): readonly string[] {
  const targets = targetsOf(command)
  const absent = targets.filter(
    ({ kind, name }) =>
      !objects.some((object) => object.kind === kinds[kind] && object.metadata.name === name),
  )
  const workloads = workloadsIn(objects).filter(
    ({ kind, name }) =>
      targets.length === 0 || targets.some((target) => kinds[target.kind] === kind && target.name === name),
  )
  const containers = workloads.flatMap((workload) => workload.containers)
  const ports = containers.flatMap((container) => container.ports ?? [])
  const found = (pattern: RegExp, exists: (...groups: string[]) => boolean): readonly string[] =>
    [...command.matchAll(pattern)].filter(([, ...groups]) => !exists(...groups)).map(([text]) => text)
  return [
    ...absent.map(({ kind, name }) => `${kind} ${name}`),
    ...found(/ -l (\S+)=([-\w]+)/g, (label = '', value) =>
      workloads.some(({ labels }) => labels[label] === value),
    ),
    ...found(/ -c (\S+)/g, (name) => containers.some((container) => container.name === name)),
    ...found(/127\.0\.0\.1:(\d+)/g, (port) => ports.some((own) => own.containerPort === Number(port))),
    ...found(/ node (\S+)\/dist\/(\S+)\.js/g, (folder = '', program) =>
      existsSync(join(root, folder, 'src', `${program}.ts`)),
    ),
  ].map((text) => `${text} in: ${command}`)
}

test('commands name objects, labels, containers, ports and programs that exist', ({ skip }) => {
  if (unavailable) skip()
  expect(commands.flatMap(missingOf)).toEqual([])
  expect(commands.flatMap(targetsOf).length).toBeGreaterThan(10)
})

test('commands name the namespace', () => {
  const withoutOne = /^kubectl (apply -k|create namespace) /
  expect(commands.filter((command) => !withoutOne.test(command) && !command.includes('-n overlay'))).toEqual(
    [],
  )
  expect(commands.length).toBeGreaterThan(25)
})
