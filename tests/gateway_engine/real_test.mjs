// The official client's calls against a model with seeded random weights: what it says has no
// meaning, so that only what must hold of every answer is checked. OPENAI_BASE_URL and
// OPENAI_API_KEY say where.
import assert from 'node:assert/strict';
import test from 'node:test';
import OpenAI from 'openai';

const client = new OpenAI({ maxRetries: 0 });
const model = 'tiny';
const messages = [{ role: 'user', content: 'Once upon a time there was a stone' }];
const chat = (more) => client.chat.completions.create({ model, messages, ...more });
const text = (answer, choice = 0) => answer.choices[choice].message.content;

test('log probabilities are those of what was said', async () => {
  const answer = await chat({
    n: 2, max_completion_tokens: 12, temperature: 0, logprobs: true, top_logprobs: 3,
  });
  let tokens = 0;
  for (const choice of answer.choices) {
    const said = choice.logprobs.content;
    tokens += said.length;
    for (const one of said) {
      assert.ok(one.logprob <= 0);
      assert.equal(one.top_logprobs.length, 3);
      assert.equal(one.top_logprobs[0].token, one.token, 'the likeliest is taken');
      assert.ok(one.top_logprobs[0].logprob >= one.top_logprobs[1].logprob);
    }
    const bytes = Buffer.concat(said.map((one) => Buffer.from(one.bytes)));
    assert.equal(new TextDecoder().decode(bytes), choice.message.content);
  }
  assert.equal(text(answer, 0), text(answer, 1));
  assert.equal(answer.usage.completion_tokens, tokens);
});

test('a seed repeats an answer and another one does not', async () => {
  const say = async (seed) => text(await chat({ seed, temperature: 1, max_tokens: 24 }));
  const first = await say(1);
  assert.equal(await say(1), first);
  assert.notEqual(await say(2), first);
});

test('a stop text ends the answer before it', async () => {
  const whole = text(await chat({ temperature: 0, max_tokens: 40 }));
  const stop = whole.slice(whole.length >> 1, (whole.length >> 1) + 3);
  const answer = await chat({ temperature: 0, max_tokens: 40, stop: [stop] });
  assert.equal(text(answer), whole.slice(0, whole.indexOf(stop)));
  assert.equal(answer.choices[0].finish_reason, 'stop');
});

test('a stream says what the whole answer says', async () => {
  const options = { temperature: 0.8, seed: 5, max_tokens: 30 };
  const whole = await chat(options);
  const stream = await chat({ ...options, stream: true, stream_options: { include_usage: true } });
  let said = '';
  let usage = null;
  for await (const chunk of stream) {
    said += chunk.choices[0]?.delta?.content ?? '';
    if (chunk.usage) usage = chunk.usage;
  }
  assert.equal(said, text(whole));
  assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
  assert.equal(usage.prompt_tokens, whole.usage.prompt_tokens);
  assert.ok(usage.prompt_tokens_details.cached_tokens > 0, 'the same beginning was just computed');
});

test('a JSON schema is kept to the letter', async () => {
  const schema = {
    type: 'object', additionalProperties: false, required: ['name', 'tags', 'kind'],
    properties: {
      name: { type: 'string', maxLength: 12 },
      tags: { type: 'array', maxItems: 3, items: { type: 'integer' } },
      kind: { enum: ['river', 'stone'] },
    },
  };
  for (const seed of [1, 2, 3]) {
    const answer = await chat({
      seed, temperature: 1, max_tokens: 400,
      response_format: { type: 'json_schema', json_schema: { name: 'thing', strict: true, schema } },
    });
    assert.equal(answer.choices[0].finish_reason, 'stop');
    const value = JSON.parse(text(answer));
    assert.deepEqual(Object.keys(value), ['name', 'tags', 'kind']);
    assert.ok(value.name.length <= 12 && value.tags.every(Number.isInteger));
    assert.ok(['river', 'stone'].includes(value.kind));
    assert.equal(text(answer), text(answer).trimEnd(), 'nothing is paid for after the value');
  }
});

test('a schema that cannot be kept is refused by its field', async () => {
  const schema = { type: 'string', pattern: 'a+' };
  await assert.rejects(chat({
    response_format: { type: 'json_schema', json_schema: { name: 'thing', schema } },
  }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.equal(error.param, 'response_format.json_schema.schema');
    assert.match(error.message, /pattern/);
    return true;
  });
});

test('a biased token is the only one said, a token out of the vocabulary is named', async () => {
  const answer = await client.completions.create({
    model, prompt: 'x', max_tokens: 6, temperature: 0, logit_bias: { 300: 100 }, logprobs: 1,
  });
  assert.equal(new Set(answer.choices[0].logprobs.tokens).size, 1);
  await assert.rejects(chat({ logit_bias: { 999999: 1 } }), (error) => error.param === 'logit_bias');
});

test('completions of several prompts come in their order', async () => {
  const ask = (prompt) => client.completions.create({ model, prompt, max_tokens: 8, temperature: 0 });
  const both = await ask(['a river', 'a stone in the winter']);
  const each = [await ask('a river'), await ask('a stone in the winter')];
  assert.deepEqual(both.choices.map((one) => one.text), each.map((one) => one.choices[0].text));
  assert.equal(both.usage.prompt_tokens, each[0].usage.prompt_tokens + each[1].usage.prompt_tokens);
});

test('embeddings are of length one and the same in both encodings', async () => {
  const input = ['a river', 'a stone', 'a river'];
  const coded = await client.embeddings.create({ model, input });
  const plain = await client.embeddings.create({ model, input, encoding_format: 'float' });
  for (const [i, { embedding }] of plain.data.entries()) {
    assert.ok(Math.abs(Math.hypot(...embedding) - 1) < 1e-4);
    assert.equal(embedding.length, coded.data[i].embedding.length);
    embedding.forEach((value, j) => assert.ok(Math.abs(value - coded.data[i].embedding[j]) < 1e-6));
  }
  assert.deepEqual(plain.data[0].embedding, plain.data[2].embedding);
  assert.notDeepEqual(plain.data[0].embedding, plain.data[1].embedding);
});

test('a prompt longer than the context is named', async () => {
  const long = 'stone river '.repeat(2000);
  await assert.rejects(chat({ messages: [{ role: 'user', content: long }] }),
    (error) => error.code === 'context_length_exceeded' && error.param === 'messages');
  await assert.rejects(client.embeddings.create({ model, input: long }),
    (error) => error.code === 'context_length_exceeded' && error.param === 'input');
});

test('a stream that is broken off leaves the engine to others', async () => {
  const stream = await chat({ stream: true, max_tokens: 900, temperature: 0 });
  let pieces = 0;
  for await (const _ of stream) {
    if (++pieces === 3) break;
  }
  assert.equal(pieces, 3);
  assert.equal((await chat({ max_tokens: 2, temperature: 0 })).choices.length, 1);
});
