// What the diagnosis found, the worst first, with what to do.

import { pill } from "./about.js";
import { experiment, get } from "./api.js";
import { empty, h, marked } from "./dom.js";
import { count, plain } from "./numbers.js";

export async function showFindings(room, known) {
  const draw = async () => {
    const { findings, unchecked, payoffs } = await get(experiment(known.name, "/diagnosis"));
    const rest = Object.entries(unchecked);
    room.replaceChildren(h("p.note", `Looked at ${count(payoffs)} payoffs.`),
      ...(findings.length ? findings.map(finding) : [empty("Nothing was found.",
        "No assumption of the policy is contradicted by the payoffs so far.")]),
      rest.length ? h("details.card", h("summary", `Not checked: ${rest.length}`),
        h("ul.why", rest.map(([check, why]) => h("li", `${check}: ${why}`)))) : "");
  };
  await draw();
  known.live.follow(draw, 10_000);
}

const finding = ({ level, check, where, evidence, measure, advice }) => h(`article.card.finding.${level}`,
  h("h2", pill(level), check), h("p.note", where), h("p", `${measure}: ${plain(evidence)}`),
    h("p", h("strong", marked(advice))));
