#include "executor/models/fixed_text.h"

namespace stowage::executor {

namespace {

constexpr std::string_view kText = R"(Of the loading of a ship

A ship that goes to sea has less room than its owner wants and more cargo than its hold can
take. So the first thing that a mate learns is not how to carry a load but where to put it. The
heavy chests go low, since a ship that is heavy above the water rolls and does not come back.
The barrels go on their sides, with the bung up, and wood between them, so that they do not work
loose in a storm. What is wanted first is loaded last. What must stay dry lies high, away from
the planks, with straw below it. When all of this is done the hold is full, and the mate has not
lifted a single chest himself. He has only said, at each hour of the day, what goes where, and
in which order.

In our harbour there was an old mate who kept a book of every voyage. On the left page he wrote
what the ship had taken on board, and on the right page when each thing was used. After some
years he saw that the two pages were never the same. Water was taken on the first day and used
on every day. Rope was taken on the first day and used when the wind was bad. The merchant's
cloth was taken on the first day and not touched until the last. "The cloth," he said, "has the
best place in the ship and does nothing there. The water has the worst place, and we walk to it
ten times a day." So he had the cloth put into a boat that was towed behind, and the water was
moved to where the cloth had been.

The captain did not like the boat. It was slow to load and slow to unload, and the line to it
was thin. If too much was put into it at once, the ship had to wait. If something was wanted
that lay in the boat, the ship had to wait again. But the mate had thought of that as well. He
did not send for a thing when it was wanted. He looked into his book, where the hour of each use
was written, counted how long the boat would take, and sent for it that long before. When the
cook came to ask for flour, the flour stood at the door. The ship did not wait, and nobody saw
why.

There was one more rule, and it is the one that the others forget. Some things are so easily
made again that it is a waste to carry them. Nobody takes hot soup on a voyage, although there
is soup on every evening. The cook takes the bones and the beans, which are small, and makes the
soup when it is time. The mate went through the ship with this in mind, and wherever he found
soup he threw it over the side. The cook had more to do than before. The ship had more room than
before. Whether that was a good trade depended on the ship, on the sea and on the cook, and the
mate wrote that down, too.

When he was very old the owners asked him for the secret. He gave them the book. They read the
left page and they read the right page, and they said that there was no secret in it, only dates
and weights. "That is so," said the mate. "A ship does on one day what it did on the day before.
If you have written down one day, and have written it down to the pound and to the minute, you
know all the others. Then you need no luck, and you need no larger ship. You need only to know,
of each thing, when it comes, how heavy it is, and when it will be wanted again."

They built a larger ship all the same. It was full within a year.
)";

}  // namespace

std::string_view fixed_text() {
  return kText;
}

}  // namespace stowage::executor
